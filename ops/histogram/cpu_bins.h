#pragma once

#include <cstdint>

#include <forebay/array/dtype.h>
#include <forebay/ops/histogram/places.h>

// How the CPU body finds the bins of many elements at once.
namespace forebay::histogram_detail {

/// Set in a found number: it is that of an edge so near that the edge has to be asked.
inline constexpr std::uint32_t kDoubtful = 0x8000'0000;

/// Writes the bin of each of `n` elements, or `bins` for what is ignored. `places` is the Places<P>
/// that the loop was asked for. Doubtful edges are asked here, but for integers of 64 bits: then
/// they are written, and the result has kDoubtful set.
using EstimateLoop = std::uint32_t(const void* x, std::int64_t n, const void* places,
                                   const Range& range, std::uint32_t bins, std::uint32_t* found);

/// The least and greatest finite of `n` elements and of what is in `least` and `greatest`, in the
/// type of their Key.
using ExtremesLoop = void(const void* x, std::int64_t n, void* least, void* greatest);

/// For the processor at hand.
struct BinLoops {
  EstimateLoop* in_f32 = nullptr;
  EstimateLoop* in_f64 = nullptr;
  ExtremesLoop* extremes = nullptr;
};
BinLoops bin_loops(Dtype x);

/// The edges of one histogram, ready to find bins.
struct Bins {
  const void* at = nullptr;  ///< bins + 1 edges: f32 for f16, bf16 and f32 data, else f64
  std::uint32_t bins = 0;
  Range range;
  Places<float> in_f32;
  Places<double> in_f64;
  EstimateLoop* estimate = nullptr;  ///< null: a search
  const std::uint32_t* table =
      nullptr;  ///< for elements of 8 bits: the bin of each of their values

  Bins() = default;
  Bins(Dtype x, const void* edges, std::int64_t count, bool equal_width);
};

/// found[i] = the bin of x[i], or bins.bins where it is ignored.
using FindBins = void(const Bins& bins, const void* x, std::int64_t n, std::uint32_t* found);
FindBins* find_bins(Dtype x);

}  // namespace forebay::histogram_detail
