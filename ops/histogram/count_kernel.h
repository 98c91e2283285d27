#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include <forebay/array/cuda/kernel.h>
#include <forebay/ops/histogram/count_shape.h>
#include <forebay/ops/histogram/edges.h>

namespace forebay::histogram_detail {

/// What the CUDA kernels are made for.
struct CountProblem {
  EdgePlan plan;
  Slices slices;
  Dtype x = Dtype::f32;
  bool weighted = false;
  bool density = false;

  bool inferred() const { return plan.kind == EdgePlan::Kind::inferred; }
  /// Of edges: one for all, or one for each slice.
  std::int64_t sets() const { return inferred() ? slices.count() : 1; }
  std::int64_t set_bytes() const {
    return static_cast<std::int64_t>(size_of(plan.dtype)) * (plan.bins + 1);
  }
  /// Whether blocks have the edges in shared memory, behind their counters.
  bool copied() const { return sets() == 1 && set_bytes() <= kMostCopiedBytes; }

  static constexpr std::int64_t kMostCopiedBytes = 16 * 1024;
};

/// A parameter of the kernels: Settings in histogram_finish.cu.
struct DeviceSettings {
  std::int64_t bins = 0;
  Range range;
  std::int64_t equal_width = 0, copied = 0;
  std::array<std::byte, 24> places = {};  ///< scale, shift, doubt as f32 or f64
};
DeviceSettings device_settings(const CountProblem& problem);

/// The kernel that counts, or adds up weights: histogram_count or histogram_weights. `loads` is the
/// text of LoadX, and of LoadWeights.
cuda::KernelSource count_source(const CountProblem& problem, const CountShape& shape,
                                const std::string& loads);
/// For inferred ranges: histogram_extremes and histogram_edges.
cuda::KernelSource extremes_source(const CountProblem& problem, const std::string& loads);
cuda::KernelSource edges_source(const CountProblem& problem, const std::string& loads);

}  // namespace forebay::histogram_detail
