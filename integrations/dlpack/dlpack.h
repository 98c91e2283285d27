#pragma once

#include <forebay/array/array.h>

// The structures of DLPack 1.x, from its own header where they are needed.
struct DLManagedTensorVersioned;
struct DLManagedTensor;

namespace forebay {

/// Wraps `array` for another library, without a copy: exact pointer (null when there are no
/// elements), byte offset 0, explicit strides, device CPU or CUDA. The result holds a reference
/// until its deleter runs, on any thread. DLPack carries no stream: make the consumer's stream wait
/// yourself (`Pipeline::next(stream)` and `Stream::wait` do). Memory that came in as read-only goes
/// out as read-only. Errors: unsupported for negative strides, which consumers reject or abort on.
DLManagedTensorVersioned* to_dlpack(const Array& array);
/// The same in the structure of DLPack before 1.0.
/// Errors: also unsupported for memory that came in as read-only, which this structure cannot say.
DLManagedTensor* to_dlpack_unversioned(const Array& array);

/// Takes over `tensor` and shows it as an array, without a copy; the deleter runs when the last
/// owner is gone, on that owner's thread. On an error `tensor` is still the caller's, except that
/// one of another major version is deleted, as the standard asks. Accepts null strides, byte
/// offsets, pinned host memory (as CPU) and managed memory (as CUDA). Forebay writes into an array
/// only where it is told to: writing into one whose tensor is flagged read-only is the caller's
/// mistake. Errors: unsupported for another major version, a dtype without a Dtype (sub-byte, fp8,
/// vector lanes), another device, rank above 8; invalid for a null tensor or shape, a negative rank
/// or extent, sizes beyond 64 bits, null data with elements, an address that is not a multiple of
/// the element's size.
Array from_dlpack(DLManagedTensorVersioned* tensor);
Array from_dlpack(DLManagedTensor* tensor);

}  // namespace forebay
