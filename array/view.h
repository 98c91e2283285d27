#pragma once

#include <cstddef>
#include <cstdint>

#include <forebay/array/dtype.h>

namespace forebay {

inline constexpr int kMaxRank = 8;

enum class DeviceKind : std::uint8_t { cpu, cuda };

/// Where memory lives and work runs: the host, or the CUDA device with ordinal `index`.
struct Device {
  DeviceKind kind = DeviceKind::cpu;
  int index = 0;
  static constexpr Device cpu() { return {}; }
  static constexpr Device cuda(int index = 0) { return {DeviceKind::cuda, index}; }
  constexpr bool is_cuda() const { return kind == DeviceKind::cuda; }
  friend constexpr bool operator==(const Device&, const Device&) = default;
};

/// Up to kMaxRank extents or strides, held in place.
struct Dims {
  std::int64_t values[kMaxRank] = {};
  int rank = 0;

  constexpr Dims() = default;
  template <class... Ints>
  requires(sizeof...(Ints) > 0) constexpr Dims(Ints... ints)
      : values{static_cast<std::int64_t>(ints)...}, rank(sizeof...(Ints)) {}

  constexpr std::int64_t operator[](int axis) const { return values[axis]; }
  constexpr std::int64_t& operator[](int axis) { return values[axis]; }
  constexpr const std::int64_t* begin() const { return values; }
  constexpr const std::int64_t* end() const { return values + rank; }
  constexpr std::int64_t* begin() { return values; }
  constexpr std::int64_t* end() { return values + rank; }
  /// Appends one value. The caller keeps the rank within kMaxRank.
  constexpr void push_back(std::int64_t value) { values[rank++] = value; }
  friend constexpr bool operator==(const Dims& a, const Dims& b) {
    if (a.rank != b.rank) return false;
    for (int i = 0; i < a.rank; ++i) {
      if (a.values[i] != b.values[i]) return false;
    }
    return true;
  }
};

/// The product of the extents; 1 for rank 0.
constexpr std::int64_t count_of(const Dims& shape) {
  std::int64_t count = 1;
  for (std::int64_t extent : shape)
    count *= extent;
  return count;
}

/// Strides of a dense row-major array, in elements.
constexpr Dims dense_strides(const Dims& shape) {
  Dims strides;
  strides.rank = shape.rank;
  std::int64_t step = 1;
  for (int axis = shape.rank - 1; axis >= 0; --axis) {
    strides[axis] = step;
    step *= shape[axis];
  }
  return strides;
}

/// An array without ownership: plain data, what bodies and kernels see. `data` points at the
/// element with index zero on every axis; strides are in elements and may be 0 or negative.
struct ArrayView {
  void* data = nullptr;
  Dtype dtype = Dtype::f32;
  Device device;
  Dims shape;
  Dims strides;

  constexpr int rank() const { return shape.rank; }
  constexpr std::int64_t count() const { return count_of(shape); }
  std::size_t bytes() const { return static_cast<std::size_t>(count()) * size_of(dtype); }
  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
};

/// True when the elements lie dense in row-major order. Axes of extent 1 do not count; an empty
/// view is dense.
constexpr bool is_dense(const Dims& shape, const Dims& strides) {
  std::int64_t step = 1;
  for (int axis = shape.rank - 1; axis >= 0; --axis) {
    if (shape[axis] == 0) return true;
    if (shape[axis] != 1 && strides[axis] != step) return count_of(shape) == 0;
    step *= shape[axis];
  }
  return true;
}
constexpr bool is_dense(const ArrayView& view) { return is_dense(view.shape, view.strides); }

// View algebra: pure functions that return another view of the same memory.
// Errors: invalid, naming the shape and the argument.

/// Axis `axes[i]` of `view` becomes axis i. `axes` is a permutation of 0..rank-1; negative values
/// count from the end.
ArrayView permute(const ArrayView& view, const Dims& axes);

/// Elements start, start+step, .. before stop on `axis`, with NumPy's clamping; `step` may be
/// negative, not 0. Negative positions count from the end; INT64_MIN and INT64_MAX stand for an
/// open end (x[::-1] is INT64_MAX, INT64_MIN, -1).
ArrayView slice(const ArrayView& view, int axis, std::int64_t start, std::int64_t stop,
                std::int64_t step = 1);

/// Repeats axes of extent 1 (and missing leading axes) to `shape` with stride 0, by NumPy's
/// broadcasting.
ArrayView broadcast_to(const ArrayView& view, const Dims& shape);

/// Whether `reshape` can keep the memory: NumPy's rule for a view without a copy.
bool can_reshape(const ArrayView& view, const Dims& shape);

/// The same elements in row-major order under another shape of equal count; one extent may be -1.
/// Errors: invalid when the counts differ or when the strides force a copy (see `can_reshape`).
ArrayView reshape(const ArrayView& view, const Dims& shape);

/// Resolves one -1 in `shape` against `count`. Errors: invalid when it does not divide.
Dims resolve_reshape(std::int64_t count, const Dims& shape);

/// Errors: invalid for a negative extent, or when the array would have more than 2^63 - 1 bytes.
void check_shape(const Dims& shape, Dtype dtype);

/// The common shape of two by NumPy's broadcasting. Errors: invalid, naming both shapes.
Dims broadcast_shapes(const Dims& a, const Dims& b);

/// `axis` counted from the end when negative. Errors: invalid outside -rank..rank-1, naming
/// the rank.
int resolve_axis(int axis, int rank);

}  // namespace forebay
