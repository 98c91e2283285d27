#include <algorithm>
#include <cstdlib>

#include <forebay/ops/expr/tile_engine.h>

namespace forebay::expr {
namespace {

using Access = Traversal::Access;

constexpr std::int64_t kMinRow = 256;      // elements of a row that are worth tiles of their own
constexpr std::int64_t kMaxPeriod = 1024;  // elements that are worth expanding

/// The elements that an array goes through over and over: it lies dense on the last axes and does
/// not move on the others. 0 when it is laid out otherwise.
std::int64_t period_of(const Dims& shape, const Dims& strides) {
  std::int64_t period = 1;
  int axis = shape.rank - 1;
  for (; axis >= 0 && strides[axis] == period; --axis)
    period *= shape[axis];
  for (; axis >= 0; --axis) {
    if (strides[axis] != 0) return 0;
  }
  return period;
}

/// In a tile of any run of elements.
Traversal::Array anywhere(const LoopNest& nest, const Dims& strides) {
  Traversal::Array array;
  const std::int64_t period = period_of(nest.shape, strides);
  if (LoopNest::is_scalar(strides)) {
    array.access = Access::uniform;
  } else if (nest.is_dense(strides)) {
    array.access = Access::direct;
  } else if (period > 0 && period <= kMaxPeriod) {
    array.access = Access::periodic;
    array.period = period;
  }
  return array;
}

/// In a tile within one row.
Traversal::Array in_row(const LoopNest& nest, const Dims& strides) {
  Traversal::Array array;
  const std::int64_t stride = strides[nest.shape.rank - 1];
  if (stride == 0) array.access = Access::uniform;
  if (stride == 1) array.access = Access::direct;
  return array;
}

// Tiles are as short as the calls allow: the shorter, the better the next tile's lines arrive while
// one is computed.
constexpr std::int64_t kTileBytes = 4 << 10;  // of the widest leaf
constexpr std::int64_t kWorthLookup = 3;      // loops, which take longer than looking up
constexpr std::int64_t kLine = 64;            // bytes of a cache line
constexpr std::int64_t kMinColumns = 8;       // elements of a row that make blocks

/// The axis that an array lies along whose neighbours on the last axis are in cache lines
/// of their own.
int block_axis_of(const Dims& shape, const Dims& strides, std::int64_t size) {
  const int last = shape.rank - 1;
  if (shape[last] < kMinColumns || std::abs(strides[last]) * size < kLine) return -1;
  for (int axis = 0; axis < last; ++axis) {
    if (strides[axis] == 1 && shape[axis] >= Traversal::kMinBlockRows) return axis;
  }
  return -1;
}

/// See Traversal::looked_up.
int looked_up_of(const Traversal& how) {
  int found = -1;
  for (std::size_t i = 0; i < how.leaves.size(); ++i) {
    if (how.leaves[i].access == Access::uniform) continue;
    const bool fits = how.leaves[i].access == Access::direct ||
                      (how.leaves[i].access == Access::strided && how.by_rows);
    if (!fits || how.leaves[i].size != 1 || found >= 0) return -1;
    found = static_cast<int>(i);
  }
  const bool written_dense = how.outputs.size() == 1 && how.outputs[0].access == Access::direct;
  return written_dense ? found : -1;
}

}  // namespace

Traversal TileEngine::traversal(std::span<const Dims> output_strides) const {
  Traversal result;
  result.nest = loop_nest(program_, output_strides);
  const LoopNest& nest = result.nest;
  const auto place = [&](auto* how) {
    result.leaves.clear();
    result.outputs.clear();
    for (std::size_t i = 0; i < nest.leaves.size(); ++i) {
      result.leaves.push_back(how(nest, nest.leaves[i]));
      if (program_.leaves[i].is_index()) result.leaves[i].access = Access::index;
    }
    for (const Dims& strides : nest.outputs)
      result.outputs.push_back(how(nest, strides));
  };
  place(anywhere);
  const auto is_strided = [](const Traversal::Array& array) {
    return array.access == Access::strided;
  };
  const auto is_index = [](const Traversal::Array& array) { return array.access == Access::index; };
  if (nest.shape[nest.shape.rank - 1] >= kMinRow &&
      (std::any_of(result.leaves.begin(), result.leaves.end(), is_index) ||
       std::any_of(result.leaves.begin(), result.leaves.end(), is_strided) ||
       std::any_of(result.outputs.begin(), result.outputs.end(), is_strided))) {
    result.by_rows = true;
    place(in_row);
  }
  std::int64_t bytes = 1;
  for (std::size_t i = 0; i < result.leaves.size(); ++i) {
    Traversal::Array& leaf = result.leaves[i];
    leaf.size = static_cast<std::int64_t>(size_of(program_.leaves[i].dtype));
    if (leaf.access == Access::direct || leaf.access == Access::strided)
      bytes = std::max(bytes, leaf.size);
  }
  result.tile = std::clamp(kTileBytes / bytes / kChunk * kChunk, kMinTile, capacity_);
  for (Traversal::Array& leaf : result.leaves) {
    leaf.room = result.room;
    if (leaf.access == Access::periodic)
      result.room +=
          static_cast<std::size_t>((leaf.period + result.tile) * leaf.size + 63) / 64 * 64;
  }
  for (std::size_t k = 0; k < result.outputs.size(); ++k) {
    const auto number = static_cast<std::size_t>(program_.outputs[k]);
    result.outputs[k].size = steps_[number].size;
  }
  const auto look = [&](const std::vector<Dims>& strides,
                        const std::vector<Traversal::Array>& arrays) {
    for (std::size_t i = 0; i < arrays.size() && result.block_axis < 0; ++i) {
      if (arrays[i].access != Access::index)
        result.block_axis = block_axis_of(nest.shape, strides[i], arrays[i].size);
    }
  };
  look(nest.leaves, result.leaves);
  look(nest.outputs, result.outputs);
  result.looked_up = result.block_axis < 0 && loops_ >= kWorthLookup ? looked_up_of(result) : -1;
  return result;
}

}  // namespace forebay::expr
