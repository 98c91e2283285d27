#include <algorithm>
#include <optional>
#include <utility>

#include <forebay/array/require.h>
#include <forebay/array/view.h>

namespace forebay {
namespace {

/// The strides of `shape` over the elements of a non-empty `view`, if they exist: each group of new
/// axes must cover a group of old axes that lie one behind the other. NumPy's rule. The counts are
/// equal.
std::optional<Dims> strides_without_copy(const ArrayView& view, const Dims& shape) {
  Dims old_shape, old_strides;  // without axes of extent 1, whose strides mean nothing
  for (int axis = 0; axis < view.rank(); ++axis) {
    if (view.shape[axis] == 1) continue;
    old_shape.push_back(view.shape[axis]);
    old_strides.push_back(view.strides[axis]);
  }
  Dims strides;
  strides.rank = shape.rank;
  int old_axis = old_shape.rank - 1;
  std::int64_t covered = 1;    // elements of the old group that the new axes so far have used up
  std::int64_t available = 1;  // elements of the old group
  std::int64_t step = 1;       // stride of the next new axis
  for (int axis = shape.rank - 1; axis >= 0; --axis) {
    if (covered == available && shape[axis] != 1) {  // the next group starts with one old axis
      step = old_strides[old_axis];
      available *= old_shape[old_axis--];
    }
    strides[axis] = step;
    if (shape[axis] == 1) continue;
    covered *= shape[axis];
    while (available % covered !=
           0) {  // an edge of the new axes falls inside the next old axis: join it
      if (old_strides[old_axis] != old_strides[old_axis + 1] * old_shape[old_axis + 1])
        return std::nullopt;
      available *= old_shape[old_axis--];
    }
    step *= shape[axis];
  }
  return strides;
}

ArrayView with_shape(ArrayView view, const Dims& shape, const Dims& strides) {
  view.shape = shape;
  view.strides = strides;
  return view;
}

}  // namespace

int resolve_axis(int axis, int rank) {
  FOREBAY_REQUIRE(rank > 0, invalid, "axis {} does not exist: the array has rank 0.", axis);
  FOREBAY_REQUIRE(-rank <= axis && axis < rank, invalid,
                  "axis {} does not exist: the array has rank {}; use {} to {}.", axis, rank, -rank,
                  rank - 1);
  return axis < 0 ? axis + rank : axis;
}

void check_shape(const Dims& shape, Dtype dtype) {
  auto bytes = static_cast<std::int64_t>(size_of(dtype));
  bool overflow = false;
  for (std::int64_t extent : shape) {
    FOREBAY_REQUIRE(extent >= 0, invalid, "shape {} has a negative extent; extents are 0 or more.",
                    to_string(shape));
    // An extent of 0 hides no overflow of the others: strides are products of them.
    overflow |= __builtin_mul_overflow(bytes, std::max<std::int64_t>(extent, 1), &bytes);
  }
  FOREBAY_REQUIRE(!overflow, invalid, "shape {} of {} is larger than 2^63 - 1 bytes.",
                  to_string(shape), name_of(dtype));
}

ArrayView permute(const ArrayView& view, const Dims& axes) {
  ArrayView result = view;
  bool seen[kMaxRank] = {};
  bool valid = axes.rank == view.rank();
  for (int i = 0; valid && i < axes.rank; ++i) {
    const std::int64_t axis = axes[i] < 0 ? axes[i] + view.rank() : axes[i];
    valid = 0 <= axis && axis < view.rank() && !std::exchange(seen[axis], true);
    if (!valid) break;
    result.shape[i] = view.shape[static_cast<int>(axis)];
    result.strides[i] = view.strides[static_cast<int>(axis)];
  }
  FOREBAY_REQUIRE(valid, invalid,
                  "permute: axes {} do not name each of the {} axes of shape {} once.",
                  to_string(axes), view.rank(), to_string(view.shape));
  return result;
}

ArrayView slice(const ArrayView& view, int axis, std::int64_t start, std::int64_t stop,
                std::int64_t step) {
  axis = resolve_axis(axis, view.rank());
  FOREBAY_REQUIRE(step != 0, invalid,
                  "slice: the step on axis {} of shape {} is 0; it must not be.", axis,
                  to_string(view.shape));
  const std::int64_t extent = view.shape[axis];
  // With a negative step the positions run from extent-1 down to 0, and -1 is the end.
  const std::int64_t low = step < 0 ? -1 : 0, high = step < 0 ? extent - 1 : extent;
  const auto clamp = [&](std::int64_t position) {
    return std::clamp(position < 0 ? position + extent : position, low, high);
  };
  start = clamp(start);
  stop = clamp(stop);
  const std::int64_t distance = step < 0 ? start - stop : stop - start;
  // -step overflows for INT64_MIN; as an unsigned number it does not.
  const std::uint64_t stride =
      step < 0 ? -static_cast<std::uint64_t>(step) : static_cast<std::uint64_t>(step);
  ArrayView result = view;
  result.shape[axis] =
      distance <= 0
          ? 0
          : 1 + static_cast<std::int64_t>((static_cast<std::uint64_t>(distance) - 1) / stride);
  if (result.shape[axis] > 1)
    result.strides[axis] *= step;  // else it means nothing, and could overflow
  if (result.count() > 0) {
    result.data = view.as<char>() +
                  start * view.strides[axis] * static_cast<std::int64_t>(size_of(view.dtype));
  }
  return result;
}

ArrayView broadcast_to(const ArrayView& view, const Dims& shape) {
  const int missing = shape.rank - view.rank();
  bool fits = missing >= 0;
  Dims strides;
  strides.rank = shape.rank;
  for (int axis = 0; fits && axis < view.rank(); ++axis) {
    const bool repeated = view.shape[axis] == 1 && shape[axis + missing] != 1;
    fits = repeated || view.shape[axis] == shape[axis + missing];
    strides[axis + missing] = repeated ? 0 : view.strides[axis];
  }
  FOREBAY_REQUIRE(fits, invalid,
                  "shape {} cannot be broadcast to {}; from the last axis backwards, extents must "
                  "be equal, 1 or missing.",
                  to_string(view.shape), to_string(shape));
  check_shape(shape, view.dtype);
  return with_shape(view, shape, strides);
}

Dims broadcast_shapes(const Dims& a, const Dims& b) {
  Dims result;
  result.rank = std::max(a.rank, b.rank);
  for (int i = 1; i <= result.rank; ++i) {
    const std::int64_t x = i <= a.rank ? a[a.rank - i] : 1, y = i <= b.rank ? b[b.rank - i] : 1;
    FOREBAY_REQUIRE(
        x == y || x == 1 || y == 1, invalid,
        "shapes {} and {} do not broadcast: axis {} is {} and {}; extents must be equal or 1.",
        to_string(a), to_string(b), -i, x, y);
    result[result.rank - i] = x == 1 ? y : x;
  }
  return result;
}

Dims resolve_reshape(std::int64_t count, const Dims& shape) {
  Dims result = shape;
  std::int64_t known = 1;
  int unknown = -1;
  bool valid = true;
  for (int axis = 0; axis < shape.rank; ++axis) {
    if (shape[axis] == -1 && unknown < 0) {
      unknown = axis;
    } else {
      valid = valid && shape[axis] >= 0 && !__builtin_mul_overflow(known, shape[axis], &known);
    }
  }
  if (valid && unknown >= 0) {
    valid = known > 0 && count % known == 0;
    if (valid) result[unknown] = count / known;
  } else {
    valid = valid && known == count;
  }
  FOREBAY_REQUIRE(valid, invalid,
                  "reshape: {} elements do not fit shape {}; the extents must multiply to {}, and "
                  "one may be -1.",
                  count, to_string(shape), count);
  return result;
}

bool can_reshape(const ArrayView& view, const Dims& shape) {
  if (count_of(shape) != view.count()) return false;
  return view.count() == 0 || strides_without_copy(view, shape).has_value();
}

ArrayView reshape(const ArrayView& view, const Dims& shape) {
  const Dims resolved = resolve_reshape(view.count(), shape);
  if (view.count() == 0) return with_shape(view, resolved, dense_strides(resolved));
  const std::optional<Dims> strides = strides_without_copy(view, resolved);
  FOREBAY_REQUIRE(
      strides, invalid,
      "reshape: shape {} with strides {} cannot become {} without a copy; make it dense first.",
      to_string(view.shape), to_string(view.strides), to_string(resolved));
  return with_shape(view, resolved, *strides);
}

}  // namespace forebay
