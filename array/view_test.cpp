#include <forebay/array/view.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <random>

#include <forebay/array/require.h>

#include "kit/kit.h"

namespace forebay {
namespace {

/// Data pointers are compared as numbers; nothing is read.
ArrayView view_of(const Dims& shape, const Dims& strides, Dtype dtype = Dtype::u8) {
  return {reinterpret_cast<void*>(std::uintptr_t{1} << 32), dtype, Device::cpu(), shape, strides};
}
ArrayView dense(const Dims& shape, Dtype dtype = Dtype::u8) {
  return view_of(shape, dense_strides(shape), dtype);
}

/// Where the elements lie, in row-major order, in elements from `base`.
std::vector<std::int64_t> offsets(const ArrayView& view, const ArrayView& base) {
  std::vector<std::int64_t> result;
  const auto size = static_cast<std::int64_t>(size_of(view.dtype));
  const std::int64_t start =
      (reinterpret_cast<std::intptr_t>(view.data) - reinterpret_cast<std::intptr_t>(base.data)) /
      size;
  for (std::int64_t i = 0; i < view.count(); ++i) {
    std::int64_t rest = i, offset = start;
    for (int axis = view.rank() - 1; axis >= 0; --axis) {
      offset += rest % view.shape[axis] * view.strides[axis];
      rest /= view.shape[axis];
    }
    result.push_back(offset);
  }
  return result;
}

using Offsets = std::vector<std::int64_t>;

TEST(View, Text) {
  EXPECT_EQ(to_string(Dims{}), "()");
  EXPECT_EQ(to_string(Dims{5}), "(5,)");
  EXPECT_EQ(to_string(Dims{3, 224, -1}), "(3, 224, -1)");
  EXPECT_EQ(to_string(Device::cpu()), "cpu");
  EXPECT_EQ(to_string(Device::cuda(3)), "cuda:3");
}

TEST(View, CountsAndDensity) {
  EXPECT_EQ(dense({}).count(), 1);
  EXPECT_EQ(dense({2, 3}, Dtype::f64).bytes(), 48u);
  EXPECT_TRUE(is_dense(dense({})));
  EXPECT_TRUE(is_dense(dense({2, 3})));
  EXPECT_TRUE(is_dense(view_of({1, 3}, {99, 1})));
  EXPECT_TRUE(is_dense(view_of({2, 0}, {7, 7})));
  EXPECT_TRUE(is_dense(view_of({0, 2}, {7, 7})));
  EXPECT_FALSE(is_dense(view_of({2, 3}, {1, 2})));
  EXPECT_FALSE(is_dense(view_of({3}, {0})));
  EXPECT_FALSE(is_dense(view_of({3}, {-1})));
}

TEST(View, ResolveAxis) {
  EXPECT_EQ(resolve_axis(1, 2), 1);
  EXPECT_EQ(resolve_axis(-1, 2), 1);
  EXPECT_EQ(resolve_axis(-2, 2), 0);
  EXPECT_ERROR(resolve_axis(2, 2), invalid,
               "axis 2 does not exist: the array has rank 2; use -2 to 1.");
  EXPECT_ERROR(resolve_axis(-3, 2), invalid,
               "axis -3 does not exist: the array has rank 2; use -2 to 1.");
  EXPECT_ERROR(resolve_axis(0, 0), invalid, "axis 0 does not exist: the array has rank 0.");
}

TEST(View, CheckShape) {
  EXPECT_NO_THROW(check_shape({INT64_MAX}, Dtype::u8));
  EXPECT_NO_THROW(check_shape({0, 5}, Dtype::c128));
  EXPECT_ERROR(check_shape({2, -3}, Dtype::u8), invalid,
               "shape (2, -3) has a negative extent; extents are 0 or more.");
  EXPECT_ERROR(check_shape({std::int64_t{1} << 60, 2}, Dtype::f32), invalid,
               "shape (1152921504606846976, 2) of f32 is larger than 2^63 - 1 bytes.");
}

TEST(View, Permute) {
  const ArrayView x = dense({2, 3, 4});
  EXPECT_EQ(permute(x, {2, 0, 1}).shape, Dims(4, 2, 3));
  EXPECT_EQ(permute(x, {2, 0, 1}).strides, Dims(1, 12, 4));
  EXPECT_EQ(permute(x, {-1, 0, -2}).shape, Dims(4, 2, 3));
  EXPECT_EQ(permute(dense({}), {}).rank(), 0);
  EXPECT_EQ(offsets(permute(dense({2, 3}), {1, 0}), x), Offsets({0, 3, 1, 4, 2, 5}));
  EXPECT_ERROR(permute(x, {0, 0, 1}), invalid,
               "permute: axes (0, 0, 1) do not name each of the 3 axes of shape (2, 3, 4) once.");
  EXPECT_ERROR(permute(x, {0, 1}), invalid,
               "permute: axes (0, 1) do not name each of the 3 axes of shape (2, 3, 4) once.");
  EXPECT_ERROR(permute(x, {0, 1, 3}), invalid,
               "permute: axes (0, 1, 3) do not name each of the 3 axes of shape (2, 3, 4) once.");
  EXPECT_ERROR(permute(x, {0, 1, -4}), invalid,
               "permute: axes (0, 1, -4) do not name each of the 3 axes of shape (2, 3, 4) once.");
}

TEST(View, SliceExamplesOfNumPy) {
  const ArrayView x = dense({5}, Dtype::f32);
  const auto of = [&](std::int64_t start, std::int64_t stop, std::int64_t step) {
    return offsets(slice(x, 0, start, stop, step), x);
  };
  EXPECT_EQ(of(1, 4, 1), Offsets({1, 2, 3}));
  EXPECT_EQ(of(-2, 100, 1), Offsets({3, 4}));
  EXPECT_EQ(of(-100, 2, 1), Offsets({0, 1}));
  EXPECT_EQ(of(4, 1, -2), Offsets({4, 2}));
  EXPECT_EQ(of(-1, -4, -1), Offsets({4, 3, 2}));
  EXPECT_EQ(of(INT64_MAX, INT64_MIN, -1), Offsets({4, 3, 2, 1, 0}));
  EXPECT_EQ(of(INT64_MIN, INT64_MAX, 1), Offsets({0, 1, 2, 3, 4}));
  EXPECT_EQ(of(0, 5, INT64_MAX), Offsets({0}));
  EXPECT_EQ(of(4, -100, INT64_MIN), Offsets({4}));
  EXPECT_EQ(of(3, 3, 1), Offsets());
  EXPECT_EQ(of(5, 0, 1), Offsets());
  EXPECT_ERROR(of(0, 5, 0), invalid,
               "slice: the step on axis 0 of shape (5,) is 0; it must not be.");
  EXPECT_ERROR(slice(x, 1, 0, 1), invalid,
               "axis 1 does not exist: the array has rank 1; use -1 to 0.");
}

TEST(View, SliceAgainstTheDefinition) {
  for (std::int64_t n = 0; n <= 4; ++n) {
    const ArrayView x = view_of({2, n}, {40, -3}, Dtype::u16);
    for (std::int64_t start = -6; start <= 6; ++start) {
      for (std::int64_t stop = -6; stop <= 6; ++stop) {
        for (const std::int64_t step : {-3, -2, -1, 1, 2, 3}) {
          // An element is in the slice when it is a whole number of steps past the first valid
          // position.
          const std::int64_t least = step > 0 ? 0 : -1, most = step > 0 ? n : n - 1;
          const auto position = [&](std::int64_t p) {
            return std::min(std::max(p < 0 ? p + n : p, least), most);
          };
          Offsets want;
          for (std::int64_t row = 0; row < 2; ++row) {
            for (std::int64_t p = position(start);
                 step > 0 ? p < position(stop) : p > position(stop); p += step) {
              want.push_back(40 * row - 3 * p);
            }
          }
          ASSERT_EQ(offsets(slice(x, -1, start, stop, step), x), want)
              << n << " " << start << ":" << stop << ":" << step;
        }
      }
    }
  }
}

TEST(View, BroadcastTo) {
  const ArrayView x = dense({3, 1});
  EXPECT_EQ(broadcast_to(x, {2, 3, 4}).strides, Dims(0, 1, 0));
  EXPECT_EQ(broadcast_to(x, {3, 1}).strides, x.strides);
  EXPECT_EQ(broadcast_to(x, {3, 0}).count(), 0);
  EXPECT_EQ(offsets(broadcast_to(dense({2}), {2, 2}), x), Offsets({0, 1, 0, 1}));
  EXPECT_EQ(offsets(broadcast_to(dense({}), {3}), x), Offsets({0, 0, 0}));
  EXPECT_ERROR(broadcast_to(dense({3}), {4, 2}), invalid,
               "shape (3,) cannot be broadcast to (4, 2); from the last axis backwards, extents "
               "must be equal, 1 or "
               "missing.");
  EXPECT_ERROR(broadcast_to(dense({2, 3}), {3}), invalid,
               "shape (2, 3) cannot be broadcast to (3,); from the last axis backwards, extents "
               "must be equal, 1 or "
               "missing.");
  EXPECT_ERROR(broadcast_to(dense({1}), {-2}), invalid,
               "shape (-2,) has a negative extent; extents are 0 or more.");
}

TEST(View, BroadcastShapes) {
  EXPECT_EQ(broadcast_shapes({3, 1}, {4}), Dims(3, 4));
  EXPECT_EQ(broadcast_shapes({}, {2, 0}), Dims(2, 0));
  EXPECT_EQ(broadcast_shapes({1, 5}, {0, 1}), Dims(0, 5));
  EXPECT_EQ(broadcast_shapes({}, {}), Dims());
  EXPECT_ERROR(
      broadcast_shapes({3, 4}, {5}), invalid,
      "shapes (3, 4) and (5,) do not broadcast: axis -1 is 4 and 5; extents must be equal or 1.");
}

TEST(View, ResolveReshape) {
  EXPECT_EQ(resolve_reshape(12, {3, -1}), Dims(3, 4));
  EXPECT_EQ(resolve_reshape(0, {3, -1}), Dims(3, 0));
  EXPECT_EQ(resolve_reshape(1, {}), Dims());
  const auto text = [](const char* shape) {
    return std::string("reshape: 12 elements do not fit shape ") + shape +
           "; the extents must multiply to 12, and one may be -1.";
  };
  EXPECT_ERROR(resolve_reshape(12, {5, -1}), invalid, text("(5, -1)"));
  EXPECT_ERROR(resolve_reshape(12, {-1, -1}), invalid, text("(-1, -1)"));
  EXPECT_ERROR(resolve_reshape(12, {3, 5}), invalid, text("(3, 5)"));
  EXPECT_ERROR(resolve_reshape(12, {-3, -4}), invalid, text("(-3, -4)"));
  EXPECT_ERROR(resolve_reshape(12, {0, -1}), invalid, text("(0, -1)"));
  EXPECT_ERROR(resolve_reshape(12, {INT64_MAX, 4}), invalid, text("(9223372036854775807, 4)"));
}

TEST(View, ReshapeExamples) {
  EXPECT_EQ(reshape(dense({2, 3}), {3, 2}).strides, Dims(2, 1));
  EXPECT_EQ(reshape(dense({4}), {1, 2, 1, 2, 1}).shape, Dims(1, 2, 1, 2, 1));
  EXPECT_EQ(reshape(dense({1, 1}), {}).rank(), 0);
  EXPECT_EQ(reshape(view_of({2, 0}, {5, 3}), {-1}).shape, Dims(0));
  EXPECT_EQ(reshape(view_of({4, 6}, {0, 0}), {3, 8}).strides, Dims(0, 0));
  EXPECT_EQ(reshape(view_of({6}, {-2}), {2, 3}).strides, Dims(-6, -2));
  EXPECT_FALSE(can_reshape(dense({2, 3}), {5}));
  EXPECT_ERROR(reshape(permute(dense({2, 3}), {1, 0}), {6}), invalid,
               "reshape: shape (3, 2) with strides (1, 3) cannot become (6,) without a copy; make "
               "it dense first.");
}

/// The strides of `shape` that visit `wanted`, found by looking one step along each axis and then
/// checking everything.
std::optional<Dims> strides_by_search(const Dims& shape, const Offsets& wanted,
                                      const ArrayView& base) {
  ArrayView candidate = view_of(shape, dense_strides(shape), base.dtype);
  const Dims steps = dense_strides(shape);
  for (int axis = 0; axis < shape.rank; ++axis) {
    if (shape[axis] > 1)
      candidate.strides[axis] = wanted[static_cast<std::size_t>(steps[axis])] - wanted[0];
  }
  if (offsets(candidate, base) != wanted) return std::nullopt;
  return candidate.strides;
}

TEST(View, ReshapeAgainstSearch) {
  std::mt19937 engine(3);
  const auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(engine);
  };
  int possible = 0, impossible = 0;
  for (int round = 0; round < 20'000; ++round) {
    // A dense array of some shape, a few axes sliced, broadcast, permuted or reversed.
    Dims shape;
    const int rank = pick(0, 4);
    for (int axis = 0; axis < rank; ++axis)
      shape.push_back(pick(1, 4));
    ArrayView view = dense(shape, Dtype::u16);
    if (rank > 0 && pick(0, 2) == 0) view.strides[pick(0, rank - 1)] = pick(-2, 12);
    if (rank > 1 && pick(0, 3) == 0)
      view = permute(view, rank == 2 ? Dims{1, 0} : rank == 3 ? Dims{0, 2, 1} : Dims{0, 2, 3, 1});
    // Another shape of the same count, from its prime factors and some ones.
    Dims other{1};
    for (std::int64_t rest = view.count(), factor = 2; rest > 1;) {
      if (rest % factor != 0) {
        ++factor;
        continue;
      }
      rest /= factor;
      if (pick(0, 1) == 0 && other.rank < 6) other.push_back(1);
      other[pick(0, other.rank - 1)] *= factor;
    }
    const Offsets wanted = offsets(view, view);
    const bool exists = strides_by_search(other, wanted, view).has_value();
    ASSERT_EQ(can_reshape(view, other), exists)
        << to_string(view.shape) << to_string(view.strides) << " to " << to_string(other);
    (exists ? possible : impossible)++;
    if (exists) {
      ASSERT_EQ(offsets(reshape(view, other), view), wanted);
    }
  }
  EXPECT_GT(possible, 1000);
  EXPECT_GT(impossible, 1000);
}

}  // namespace
}  // namespace forebay
