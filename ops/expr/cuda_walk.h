#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <forebay/ops/expr/loop_nest.h>

// How a generated kernel goes through memory: decided from the layouts alone, for the text and for the launch.
namespace forebay::expr {

/// How an array lies along the axis of packs.
enum class Way : std::uint8_t {
  scalar,    ///< one element everywhere
  constant,  ///< the same element along the axis
  along,     ///< neighbours along the axis are neighbours in memory
  interleaved,  ///< .. `together` elements apart, and those between are of the axis that a thread has whole
  across,  ///< form tiles: neighbours along the axis before the last are neighbours in memory
  apart,   ///< neighbours are further apart
  index,   ///< in no memory: elements are their own numbers
};

struct CudaWalk {
  enum class Form : std::uint8_t {
    items,  ///< a thread has packs of the last axis; of `together` rows at once where that is more than one
    tiles,  ///< a block has a square of the last two axes; what lies across goes through shared memory
  };
  Form form = Form::items;
  LoopNest
      nest;  ///< in the kernel's order: the axis of packs is last, the one of `together` before it
  int together = 1;   ///< extent of the axis before the last where a thread has all of it; else 1
  int side = 0;       ///< of the squares of form tiles
  int pack = 1;       ///< elements along the last axis that a thread moves at once
  bool flat = true;   ///< every array is dense or one element: no index arithmetic
  bool wide = false;  ///< offsets need 64 bits
  std::vector<Way> leaves, outputs;
  /// Leaves along the axis of packs or interleaved whose packs do not start where an access may, so that they are read
  /// one by one.
  std::vector<bool> loose;

  /// The values of leaves that many elements share, where the parameter of the kernel has them: f32 tables in host memory.
  /// One, or one for each of the rows taken together.
  std::vector<std::vector<float>> held;

  /// Whether leaf `i` is the same for all items.
  bool is_common(std::size_t i) const;
  /// Axes on which an item has one index: all but the last and that of `together`.
  int outer_rank() const { return nest.shape.rank - (together > 1 ? 2 : 1); }
  /// Those of them that come from the number of a row: in form tiles, not the one before the last.
  int row_rank() const { return outer_rank() - (form == Form::tiles ? 1 : 0); }
};

/// Whether every pack of an array at `address` is where its accesses may be; true for what is not moved in packs.
bool allows_packs(const CudaWalk& walk, std::uint64_t address, Dtype dtype, const Dims& strides,
                  Way way);

/// `output_strides` are over the program's shape, one for each output.
CudaWalk cuda_walk(const Program& program, std::span<const Dims> output_strides);
/// With dense outputs.
CudaWalk cuda_walk(const Program& program);

}  // namespace forebay::expr
