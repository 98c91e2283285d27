#include <algorithm>
#include <cstring>

#include <forebay/array/past_cache.h>
#include <forebay/ops/expr/tile_engine.h>
#include <forebay/ops/expr/tile_parts.h>

// Tiles of some rows by some columns, for arrays that lie along different axes.
namespace forebay::expr {
namespace {

constexpr std::int64_t kLine = 64;  // bytes of a cache line
constexpr std::int64_t kRows =
    32;  // whole cache lines along the block axis, for elements of 2 bytes and more
constexpr std::int64_t kColumns = 16;  // along the rows, at least: likewise
static_assert(TileEngine::kMinTile / kColumns >= Traversal::kMinBlockRows);
static_assert(TileEngine::kMaxTile / Traversal::kMinBlockRows <= kChunk);

}  // namespace

/// How the blocks lie in the nest.
struct TileEngine::Blocks {
  std::int64_t rows, columns;  // of a block
  std::int64_t row_blocks, column_blocks;
  std::int64_t count;
};

TileEngine::Blocks TileEngine::blocks_of(const Traversal& traversal) const {
  const Dims& shape = traversal.nest.shape;
  const std::int64_t height = shape[traversal.block_axis], width = shape[shape.rank - 1];
  Blocks blocks{};
  blocks.rows = std::min({kRows, height, capacity_ / kColumns});
  blocks.columns = std::min(capacity_ / blocks.rows / kColumns * kColumns, width);
  blocks.row_blocks = (height - 1) / blocks.rows + 1;
  blocks.column_blocks = (width - 1) / blocks.columns + 1;
  blocks.count = traversal.nest.count / (height * width) * blocks.row_blocks * blocks.column_blocks;
  return blocks;
}

std::int64_t TileEngine::block_count(const Traversal& traversal) const {
  return traversal.nest.count == 0 ? 0 : blocks_of(traversal).count;
}

void TileEngine::run_blocks(const Traversal& traversal, std::span<const std::byte* const> leaves,
                            std::span<std::byte* const> outputs, std::int64_t first,
                            std::int64_t last) const {
  Workspace& work = workspace();
  prepare(work);
  work.offsets.resize(leaves.size() + outputs.size());
  const Blocks blocks = blocks_of(traversal);
  const LoopNest& nest = traversal.nest;
  const std::int64_t height = nest.shape[traversal.block_axis],
                     width = nest.shape[nest.shape.rank - 1];
  for (std::int64_t block = first; block < last; ++block) {
    const std::int64_t column = block % blocks.column_blocks * blocks.columns;
    const std::int64_t row = block / blocks.column_blocks % blocks.row_blocks * blocks.rows;
    std::int64_t outer = block / blocks.column_blocks / blocks.row_blocks;
    // The number of the block's first row among the rows of the nest.
    std::int64_t number = 0, step = 1;
    for (int axis = nest.shape.rank - 2; axis >= 0; --axis) {
      const std::int64_t extent = nest.shape[axis];
      if (axis == traversal.block_axis) {
        number += row * step;
      } else {
        number += outer % extent * step;
        outer /= extent;
      }
      step *= extent;
    }
    place_row(nest, number, work.offsets);
    const std::int64_t rows = std::min(blocks.rows, height - row);
    const std::int64_t columns = std::min(blocks.columns, width - column);
    run_tile({traversal, leaves, outputs, 0, column, rows * columns, rows, work.offsets.data(),
              work.offsets.data() + leaves.size()},
             work);
  }
}

/// A leaf's part of the block into `buffer`, row after row.
void TileEngine::read_block(const Tile& tile, std::size_t leaf, std::byte* buffer) const {
  const Traversal& how = tile.traversal;
  const Dims& strides = how.nest.leaves[leaf];
  const std::int64_t size = how.leaves[leaf].size, columns = tile.n / tile.rows;
  const std::int64_t down = strides[how.block_axis], along = strides[strides.rank - 1];
  const std::byte* const from =
      tile.leaves[leaf] + (tile.leaf_rows[leaf] + tile.column * along) * size;
  if (down == 1 && along != 0 && along != 1) {
    CpuCopy* const scatter_row = level_->scatter(static_cast<std::size_t>(size));
    // The lines of the next block on the way: no prefetcher sees a pattern in them.
    const std::byte* next = from + columns * along * size;
    for (std::int64_t column = 0; column < columns; ++column, next += along * size) {
      for (std::int64_t line = 0; line < tile.rows * size; line += kLine)
        __builtin_prefetch(next + line, 0, 2);
      scatter_row(buffer + column * size, from + column * along * size, columns, tile.rows);
    }
    return;
  }
  CpuCopy* const gather_row = level_->gather(static_cast<std::size_t>(size));
  for (std::int64_t row = 0; row < tile.rows; ++row)
    gather_row(buffer + row * columns * size, from + row * down * size, along, columns);
}

/// And back to an output. A row is no longer than a chunk, so that what is uniform is its own row.
void TileEngine::write_block(const Tile& tile, std::size_t k, const Operand& value) const {
  const Traversal& how = tile.traversal;
  const Dims& strides = how.nest.outputs[k];
  const std::int64_t size = how.outputs[k].size, columns = tile.n / tile.rows;
  const std::int64_t down = strides[how.block_axis], along = strides[strides.rank - 1];
  const auto* const from = static_cast<const std::byte*>(value.data);
  const std::int64_t pitch = value.uniform ? 0 : columns;
  std::byte* const to = tile.outputs[k] + (tile.output_rows[k] + tile.column * along) * size;
  if (along == 1) {
    const auto bytes = static_cast<std::size_t>(columns * size);
    for (std::int64_t row = 0; row < tile.rows; ++row) {
      std::byte* const target = to + row * down * size;
      const std::byte* const source = from + row * pitch * size;
      how.past_cache ? copy_past_cache(target, source, bytes)
                     : (void)std::memcpy(target, source, bytes);
    }
  } else if (down == 1) {
    CpuCopy* const gather_row = level_->gather(static_cast<std::size_t>(size));
    for (std::int64_t column = 0; column < columns; ++column)
      gather_row(to + column * along * size, from + column * size, pitch, tile.rows);
  } else {
    CpuCopy* const scatter_row = level_->scatter(static_cast<std::size_t>(size));
    for (std::int64_t row = 0; row < tile.rows; ++row)
      scatter_row(to + row * down * size, from + row * pitch * size, along, columns);
  }
}

}  // namespace forebay::expr
