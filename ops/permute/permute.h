#pragma once

#include <forebay/ops/eager.h>

namespace forebay {

/// Settings of permute: `axes[i]` is the axis of x that becomes axis i. Empty reverses the axes.
struct Permute {
  std::vector<std::int64_t> axes = {};
  void fields(FieldVisitor& visitor);
};

/// Reorders the axes. An index map: with pointwise neighbours it is part of their kernel, not a
/// pass of its own.
///
///     out[j0, j1, ..] = x[i0, i1, ..]   with   j_k = i_axes[k]
///
/// Shapes:  out has x's extents in the order of `axes`; axis 0 is the batch. Dense.
/// Dtypes:  all; out as x.
/// Devices: cpu, cuda; the same bits.
/// Errors:  invalid when `axes` is no permutation of x's axes (negative ones count from the end).
/// Source:  numpy.transpose.
Array permute(const Array& x, const Permute& settings, const Context& context);

}  // namespace forebay
