#include <forebay/ops/slices.h>

#include <array>

#include <forebay/array/require.h>
#include <forebay/ops/checks.h>

namespace forebay {
namespace {

constexpr std::array<std::string_view, 5> kLayouts = {"none", "NCHW", "NHWC", "NCL", "NC"};

}  // namespace

std::span<const std::string_view> names_of(Layout) { return kLayouts; }

int channel_axis(std::string_view op, Layout layout, const Dims& shape) {
  const std::string_view name = kLayouts[static_cast<std::size_t>(layout)];
  FOREBAY_REQUIRE(static_cast<std::size_t>(shape.rank) == name.size(), invalid,
                  "{}: `layout` is {}, but `x` has shape {}; it must have {} axes. Use `axes` for "
                  "another layout.",
                  op, name, to_string(shape), name.size());
  return static_cast<int>(name.find('C'));
}

AxisSet reduced_axes(std::string_view op, const std::optional<std::vector<std::int64_t>>& axes,
                     Layout layout, bool per_sample, const Dims& shape) {
  FOREBAY_REQUIRE(!axes || layout == Layout::none, invalid,
                  "{}: `axes` and `layout` are both given; give one of them.", op);
  FOREBAY_REQUIRE(
      !per_sample || shape.rank > 0, invalid,
      "{}: `per_sample` is true, but `x` has rank 0; its first axis must be the samples.", op);
  AxisSet set = 0;
  if (axes) {
    for (const std::int64_t given : *axes) {
      const int axis = checked_axis(op, "axes", given, shape);
      FOREBAY_REQUIRE(!has_axis(set, axis), invalid,
                      "{}: `axes` names axis {} twice; give each axis once.", op, axis);
      FOREBAY_REQUIRE(!per_sample || axis != 0, invalid,
                      "{}: `axes` has axis 0, which `per_sample` keeps; leave one of them out.",
                      op);
      set |= AxisSet{1} << axis;
    }
    return set;
  }
  set = all_axes(shape.rank);
  if (layout != Layout::none) set &= ~(AxisSet{1} << channel_axis(op, layout, shape));
  if (per_sample) set &= ~AxisSet{1};
  return set;
}

Dims kept_shape(const Dims& shape, AxisSet reduced) {
  Dims kept;
  for (int axis = 0; axis < shape.rank; ++axis) {
    if (!has_axis(reduced, axis)) kept.push_back(shape[axis]);
  }
  return kept;
}

Slices slices_of(const Dims& shape, AxisSet reduced) {
  struct Merged {
    bool reduced;
    Slices::Axis axis;
  };
  std::array<Merged, kMaxRank> merged{};  // innermost first, kinds alternate
  int count = 0;
  std::int64_t stride = 1;
  for (int axis = shape.rank - 1; axis >= 0; --axis) {
    if (shape[axis] != 1) {
      if (count > 0 && merged[count - 1].reduced == has_axis(reduced, axis)) {
        merged[count - 1].axis.extent *= shape[axis];
      } else {
        merged[count++] = {has_axis(reduced, axis), {shape[axis], stride}};
      }
    }
    stride *= shape[axis];
  }

  Slices slices;
  int next = 0;
  if (next < count && !merged[next].reduced) slices.columns = merged[next++].axis.extent;
  if (next < count && merged[next].reduced) slices.rows = merged[next++].axis.extent;
  for (; next < count; ++next) {
    if (merged[next].reduced) {
      slices.reduced[slices.reduced_count++] = merged[next].axis;
      slices.outer *= merged[next].axis.extent;
    } else {
      slices.kept[slices.kept_count++] = merged[next].axis;
      slices.groups *= merged[next].axis.extent;
    }
  }
  return slices;
}

Tiling tile(const Slices& slices, std::int64_t chunk, std::int64_t block) {
  const auto parts = [](std::int64_t count, std::int64_t size) {
    return std::max<std::int64_t>(1, (count + size - 1) / size);
  };
  Tiling tiling;
  tiling.chunks = parts(slices.columns, chunk);
  tiling.chunk = parts(slices.columns, tiling.chunks);
  tiling.chunks = slices.columns == 0 ? 0 : parts(slices.columns, tiling.chunk);
  tiling.block = std::max<std::int64_t>(1, std::min(block, slices.length()));
  tiling.blocks = parts(slices.length(), tiling.block);
  return tiling;
}

Unit unit_of(const Slices& slices, const Tiling& tiling, std::int64_t unit) {
  Unit u;
  const std::int64_t block = unit % tiling.blocks;
  const std::int64_t chunk = unit / tiling.blocks % tiling.chunks;
  u.group = unit / tiling.blocks / tiling.chunks;
  u.column = chunk * tiling.chunk;
  u.columns = std::min(tiling.chunk, slices.columns - u.column);
  u.first = block * tiling.block;
  u.last = std::min(u.first + tiling.block, slices.length());
  u.slice = u.group * slices.columns + u.column;
  u.offset = slices.group_offset(u.group) + u.column;
  return u;
}

}  // namespace forebay
