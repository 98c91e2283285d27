#include <algorithm>

#include <forebay/ops/expr/tile_engine.h>
#include <forebay/ops/expr/tile_parts.h>

// Leaves that are in no memory: the numbers of elements.
namespace forebay::expr {
namespace {

void count_up(std::uint64_t* to, std::int64_t first, std::int64_t step, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i)
    to[i] = static_cast<std::uint64_t>(first + i * step);
}

/// Elements begin .. begin + n of the nest, row by row.
void count_rows(const LoopNest& nest, const Dims& strides, std::int64_t offset, std::int64_t begin,
                std::int64_t n, std::uint64_t* to) {
  const int last = nest.shape.rank - 1;
  std::int64_t column = begin % nest.shape[last];
  for (std::int64_t row = begin / nest.shape[last]; n > 0; ++row, column = 0) {
    std::int64_t first = offset + column * strides[last], rest = row;
    for (int axis = last - 1; axis >= 0; --axis) {
      first += rest % nest.shape[axis] * strides[axis];
      rest /= nest.shape[axis];
    }
    const std::int64_t count = std::min(nest.shape[last] - column, n);
    count_up(to, first, strides[last], count);
    to += count;
    n -= count;
  }
}

}  // namespace

Operand TileEngine::index_value(const Tile& tile, std::size_t leaf, std::uint64_t* buffer) const {
  const Traversal& how = tile.traversal;
  const Dims& strides = how.nest.leaves[leaf];
  const std::int64_t offset = program_.leaves[leaf].offset;
  const std::int64_t along = strides[strides.rank - 1];
  if (LoopNest::is_scalar(strides)) {
    count_up(buffer, offset, 0, std::min(kChunk, tile.n));
    return {buffer, true};
  }
  if (tile.rows > 0) {
    const std::int64_t columns = tile.n / tile.rows, down = strides[how.block_axis];
    const std::int64_t first = offset + tile.leaf_rows[leaf] + tile.column * along;
    for (std::int64_t row = 0; row < tile.rows; ++row)
      count_up(buffer + row * columns, first + row * down, along, columns);
  } else if (how.by_rows) {
    count_up(buffer, offset + tile.leaf_rows[leaf] + tile.column * along, along, tile.n);
  } else {
    count_rows(how.nest, strides, offset, tile.begin, tile.n, buffer);
  }
  return {buffer, false};
}

}  // namespace forebay::expr
