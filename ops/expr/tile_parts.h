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

/// Asks for the cache lines of the next tile bit by bit while one is computed. The processor's
/// prefetchers alone wait while a tile's instructions go over what is in the first-level cache:
/// with this, a chain of 12 took 5.4 ms instead of 7.7.
class Ahead {
 public:
  /// The tile's elements of a leaf lie in `bytes` bytes from `data`; the next tile's behind them. A
  /// share of the lines is asked for before each of `loops` loops. Sparse ones (strides beyond a
  /// few lines) are left alone.
  void add(const std::byte* data, std::int64_t bytes, std::int64_t loops) {
    if (count_ == kMost || bytes > kMostBytes || loops == 0) return;
    parts_[count_++] = {data + bytes, bytes, (bytes / loops + kLine - 1) / kLine * kLine};
  }
  void ask() {
    for (int i = 0; i < count_; ++i) {
      Part& part = parts_[i];
      const std::int64_t bytes = std::min(part.share, part.left);
      for (std::int64_t line = 0; line < bytes; line += kLine)
        __builtin_prefetch(part.next + line, 0, 2);
      part.next += bytes;
      part.left -= bytes;
    }
  }

 private:
  static constexpr int kMost = 4;
  static constexpr std::int64_t kLine = 64, kMostBytes = 16 << 10;
  struct Part {
    const std::byte* next;
    std::int64_t left, share;
  };
  Part parts_[kMost];
  int count_ = 0;
};

/// A thread's own: it grows to what the largest program needs, and stays.
struct TileEngine::Workspace {
  Buffer memory;
  std::size_t bytes = 0;
  Buffer expanded;  // what is periodic
  std::size_t expanded_bytes = 0;
  std::vector<Operand> values;  // of each instruction
  Buffer looked_up;             // a table, and a piece of a row
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
  const std::byte* values = nullptr;  ///< 256, instead of what traversal.looked_up has
};

/// The leaf's first element in the tile; where a tile is any run of elements of a strided leaf, the
/// array's first.
inline const std::byte* first_of(const TileEngine::Tile& tile, std::size_t leaf) {
  const Traversal& how = tile.traversal;
  const Dims& strides = how.nest.leaves[leaf];
  std::int64_t first = 0;
  if (how.by_rows || tile.rows > 0) {
    first = tile.leaf_rows[leaf] + tile.column * strides[strides.rank - 1];
  } else if (how.leaves[leaf].access == Traversal::Access::direct) {
    first = tile.begin;
  }
  return tile.leaves[leaf] + first * how.leaves[leaf].size;
}

/// Elements from one element of a tile to the next in the leaf's memory, where that is the same
/// throughout; else 0.
inline std::int64_t step_in_tile(const TileEngine::Tile& tile, std::size_t leaf) {
  const Traversal& how = tile.traversal;
  const Dims& strides = how.nest.leaves[leaf];
  if (tile.rows > 0) return 0;
  if (how.leaves[leaf].access == Traversal::Access::direct) return 1;
  return how.by_rows ? strides[strides.rank - 1] : 0;
}

/// Likewise of an output that is written dense.
inline std::byte* first_of_output(const TileEngine::Tile& tile, std::size_t k) {
  const Traversal& how = tile.traversal;
  const std::int64_t first = how.by_rows ? tile.output_rows[k] + tile.column : tile.begin;
  return tile.outputs[k] + first * how.outputs[k].size;
}

}  // namespace forebay::expr
