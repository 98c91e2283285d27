#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <forebay/ops/histogram/edges.h>
#include <forebay/ops/slices.h>

namespace forebay::histogram_detail {

/// What of a device the cut depends on.
struct CountDevice {
  std::int64_t multiprocessors = 1;
  std::int64_t shared_bytes = 0;  ///< that a block may have
};

/// How the CUDA kernel counts: its options (histogram.cu says what each is) and its units.
struct CountShape {
  std::int64_t block = 256;
  std::int64_t team = 256;
  std::int64_t copies = 32;
  std::int64_t bits = 32;
  std::int64_t parts = 1;
  bool raw = false;
  bool split = false;
  bool columns = false;
  bool runs = false;
  bool wide = false;
  std::int64_t depth = 4;
  std::int64_t resident = 1024;
  bool weighted = false;
  Tiling tiling;

  /// As options of the kernel.
  std::vector<std::string> options() const;
  /// Counters of a unit.
  std::int64_t slots(std::int64_t bins) const {
    return raw ? 256 : columns ? tiling.chunk * (bins + 1) : bins;
  }
  std::int64_t region_count() const { return block / std::max<std::int64_t>(team, 32); }
  /// Bytes of all counters of a block, when a unit has `slots`.
  std::int64_t counter_bytes(std::int64_t slots) const;
};

/// For counts. `x` is the dtype of the elements.
CountShape count_shape(const Slices& slices, std::int64_t bins, Dtype x, const CountDevice& device);

/// For sums of weights: the cut depends on shapes alone, so that the sums have the same bits on any
/// model of GPU.
CountShape weighted_shape(const Slices& slices, std::int64_t bins);

/// For the search of the least and the greatest value, in blocks of 256 threads.
CountShape extremes_shape(const Slices& slices, Dtype x);

}  // namespace forebay::histogram_detail
