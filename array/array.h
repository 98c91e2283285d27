#pragma once

#include <memory>
#include <span>
#include <vector>

#include <forebay/array/context.h>
#include <forebay/array/view.h>

namespace forebay {

/// An n-dimensional array: a view plus shared ownership of the memory behind it. Copies
/// share the memory.
///
/// Work on arrays is asynchronous: an array is valid in the order of the stream that made it, and
/// the memory goes back to its resource in that order when the last owner drops it. Synchronize the
/// stream before the host reads. Rank 0..8; extents of 0 and 1, strides of 0 and negative strides
/// are all allowed.
class Array {
 public:
  /// No elements, no memory: rank 1, extent 0, f32 on the CPU.
  Array();
  /// Shares ownership of `owner`; `view.data` must stay valid as long as it lives.
  Array(const ArrayView& view, std::shared_ptr<void> owner);

  /// Uninitialised dense memory from `context.memory`.
  static Array empty(const Dims& shape, Dtype dtype, const Context& context);
  /// Uninitialised dense memory from `memory` in the order of `stream`.
  static Array empty(const Dims& shape, Dtype dtype, const MemoryPtr& memory, const Stream& stream);
  static Array zeros(const Dims& shape, Dtype dtype, const Context& context);
  /// A dense host array that holds a copy of `values` in row-major order.
  /// Errors: invalid when the count of `values` is not that of `shape`.
  template <class T>
  static Array from(const Dims& shape, std::span<const T> values) {
    return from_host(shape, dtype_of<T>, values.data(), values.size());
  }
  template <class T>
  static Array from(const Dims& shape, const std::vector<T>& values) {
    return from(shape, std::span<const T>(values));
  }

  const ArrayView& view() const { return view_; }
  void* data() const { return view_.data; }
  Dtype dtype() const { return view_.dtype; }
  Device device() const { return view_.device; }
  const Dims& shape() const { return view_.shape; }
  const Dims& strides() const { return view_.strides; }
  int rank() const { return view_.rank(); }
  std::int64_t count() const { return view_.count(); }
  std::size_t bytes() const { return view_.bytes(); }
  const std::shared_ptr<void>& owner() const { return owner_; }
  template <class T>
  T* as() const {
    return view_.as<T>();
  }

  /// Another view of the same memory; see view.h for the view functions.
  Array with_view(const ArrayView& view) const { return Array(view, owner_); }
  Array permute(const Dims& axes) const { return with_view(forebay::permute(view_, axes)); }
  Array slice(int axis, std::int64_t start, std::int64_t stop, std::int64_t step = 1) const {
    return with_view(forebay::slice(view_, axis, start, stop, step));
  }
  Array broadcast_to(const Dims& shape) const {
    return with_view(forebay::broadcast_to(view_, shape));
  }
  Array reshape(const Dims& shape) const { return with_view(forebay::reshape(view_, shape)); }

 private:
  static Array from_host(const Dims& shape, Dtype dtype, const void* values, std::size_t count);
  ArrayView view_;
  std::shared_ptr<void> owner_;
};

/// Enqueues a copy of `source` into `target` on `stream`: equal shapes and dtypes, both dense, any
/// pair of devices. The caller keeps both alive until the stream has passed. (`contiguous` in ops
/// makes strided data dense.)
/// Errors: invalid for unequal shapes or dtypes, or a view that is not dense.
void copy(const ArrayView& source, const ArrayView& target, const Stream& stream);

/// A dense copy of the dense array `source` on the device of `context`, enqueued there; `source`
/// is kept alive.
Array copy_to(const Array& source, const Context& context);

/// Enqueues a fill of `target`'s bytes with `value`; `target` is dense.
void fill_bytes(const ArrayView& target, unsigned char value, const Stream& stream);

}  // namespace forebay
