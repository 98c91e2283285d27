#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <forebay/ops/op.h>

// How random_flip and random_crop move the elements of each sample: axis by axis, from a place or in
// a direction that a random word of the sample decides. Both devices follow the same plain numbers.
namespace forebay {

/// One axis of the op's input, 1 or above, and what word number `axis` of a sample (random.h)
/// decides: index i of the output comes from index start + i, counted from the other end when
/// reversed.
///
///     start = (word * places >> 32) - padding;  reversed: word < threshold
///
/// An index outside of the input is filled.
struct MovedAxis {
  int axis = 0;
  std::int64_t extent = 0;      ///< of the output
  std::int64_t places = 1;      ///< that the start may have
  std::int64_t padding = 0;     ///< of them lie before the input
  std::uint64_t threshold = 0;  ///< 0 to 2^32: of being reversed
};

/// The moves of one op, with the axes that are moved together as one. As in sample_move.cu.
struct SampleMove {
  static constexpr int kMaxAxes = kMaxRank - 1;
  struct Axis {
    std::int64_t in = 1, out = 1;  ///< extents
    std::int64_t stride = 0;       ///< elements of the input
    std::int64_t word = -1;        ///< -1: it is not moved
    std::int64_t places = 1, padding = 0;
    std::uint64_t threshold = 0;
  };
  /// Outer axes first. The last is a line: `in` blocks of `inner` elements one after the other.
  Axis axes[kMaxAxes];
  std::int64_t rank = 1;
  std::int64_t inner = 1;
  std::int64_t samples = 0, in_elements = 1, out_elements = 1;  ///< of a sample
  std::uint64_t sequence = 0;                                   ///< the op's part of it (random.h)

  SampleMove(const Dims& shape, std::span<const MovedAxis> moved, std::uint64_t op_sequence);
  const Axis& line() const { return axes[rank - 1]; }
};

/// What an output of `dtype` has where the input has nothing.
struct Fill {
  alignas(16) std::uint64_t words[2] = {};
  Fill() = default;
  Fill(const Number& value, Dtype dtype);
};

/// The op's `axes` counted from 0. Errors: as axes_of; invalid, "random_flip: `axes` has 0, which is
/// the batch; it moves elements within samples, along axes 1 to 2."
std::vector<int> sample_axes_of(std::string_view op, const std::vector<std::int64_t>& axes,
                                const Dims& shape);

/// The bodies: they fuse both ways. `problem` has the inputs of a random op: x, the sample ids and
/// the position.
std::unique_ptr<Body> move_samples_cpu(const SampleMove& move, const Fill& fill,
                                       const Problem& problem);
std::unique_ptr<Body> move_samples_cuda(const SampleMove& move, const Fill& fill,
                                        const Problem& problem, const Context& context);

/// Numbers of the sources that are the sample ids and the position.
std::pair<std::size_t, std::size_t> draw_sources(const Problem& problem);

}  // namespace forebay
