#pragma once

// Internal: the seam between the array layer and CUDA. cuda/absent.cpp defines the same in a build
// without CUDA. Device ordinals have been checked by the caller (require_device), sizes may be 0.

#include <cstddef>
#include <memory>

#include <forebay/array/memory.h>
#include <forebay/array/stream.h>
#include <forebay/array/stream_state.h>

namespace forebay::cuda {

/// Devices that this process can use; 0 without a driver. Never throws.
int device_count();
/// Why device_count() is 0, as a clause without a full stop ("no CUDA driver is installed"); ""
/// when it is not 0.
const char* absence_reason();

/// A new non-blocking stream. Errors: device.
std::shared_ptr<StreamState> make_stream(int device);
/// A stream that somebody else owns; null is the legacy default stream.
std::shared_ptr<StreamState> borrow_stream(void* cuda_stream, int device);
/// A reusable event without timing. Errors: device.
std::shared_ptr<EventState> make_event(int device);

/// Page-locked host memory, usable from every device; one resource per process. device() is the
/// CPU.
MemoryPtr pinned_memory();
/// The explicit pool of `device`; one per device and process.
MemoryPtr device_memory(int device);

/// Enqueues a copy on the CUDA stream `stream`, between any two devices, host to host included.
void copy_bytes(void* to, Device to_device, const void* from, Device from_device, std::size_t bytes,
                const Stream& stream);
/// Enqueues a fill of `bytes` bytes of `device`, which may be the host, on the CUDA stream
/// `stream`.
void fill_bytes(void* data, Device device, unsigned char value, std::size_t bytes,
                const Stream& stream);

}  // namespace forebay::cuda
