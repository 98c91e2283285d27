#pragma once

#include <algorithm>
#include <vector>

#include <forebay/ops/expr/tile_engine.h>

// What the files of the tile engine share; internal.
namespace forebay::expr {

/// The offsets of row number `row` in each leaf and output.
inline void place_row(const LoopNest& nest, std::int64_t row, std::vector<std::int64_t>& offsets) {
  std::fill(offsets.begin(), offsets.end(), 0);
  for (int axis = nest.shape.rank - 2; axis >= 0; --axis) {
    const std::int64_t index = row % nest.shape[axis];
    row /= nest.shape[axis];
    if (index == 0) continue;
    std::size_t place = 0;
    for (const Dims& strides : nest.leaves)
      offsets[place++] += index * strides[axis];
    for (const Dims& strides : nest.outputs)
      offsets[place++] += index * strides[axis];
  }
}

/// A thread's own: it grows to what the largest program needs, and stays.
struct TileEngine::Workspace {
  Buffer memory;
  std::size_t bytes = 0;
  Buffer expanded;  // what is periodic
  std::size_t expanded_bytes = 0;
  std::vector<Operand> values;  // of each instruction
  std::vector<std::int64_t>
      offsets;  // of each leaf and output: elements to index zero of the tile's row
};

/// One tile of a run.
struct TileEngine::Tile {
  const Traversal& traversal;
  std::span<const std::byte* const> leaves;
  std::span<std::byte* const> outputs;
  std::int64_t begin;   // of the tile, in row-major order
  std::int64_t column;  // of its first element, by rows
  std::int64_t n;
  std::int64_t rows;              // of a block, each of n / rows elements; 0: this is none
  const std::int64_t* leaf_rows;  // elements to the tile's row, by rows
  const std::int64_t* output_rows;
};

}  // namespace forebay::expr
