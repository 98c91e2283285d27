#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <forebay/ops/eager.h>
#include <forebay/ops/op.h>
#include <forebay/ops/slices.h>

namespace forebay {

/// Settings of histogram. Without `range` and `edges` the range is that of each histogram's finite
/// values.
struct Histogram {
  std::int64_t bins = 10;
  std::optional<Reals> range = {};
  std::optional<Reals> edges = {};
  std::optional<std::vector<std::int64_t>> axes = {};
  Layout layout = Layout::none;
  bool per_sample = false;
  bool density = false;

  void fields(FieldVisitor& visitor);
};

struct HistogramResult {
  Array hist;   ///< i64, f64 with weights or density; shape of the kept axes, then (bins,)
  Array edges;  ///< f32 for f32, f16 and bf16 data, else f64; (bins + 1,), one row a histogram for
                ///< inferred ranges
  Array ignored;  ///< i64, shape of the kept axes: values outside the edges, and NaN
};

/// Counts how many values of x lie in each bin: a value v is in bin i when edges[i] <= v < edges[i
/// + 1], or in the last bin when v equals the last edge. Values outside, and NaN, are ignored and
/// counted as such.
///
///     edges[i] = low + i * ((high - low) / bins), in f64, rounded to the dtype of the edges;
///     edges[bins] = high
///
/// `range` = [low, high] is rounded to the dtype of the edges first. Where it is inferred, low and
/// high are the least and greatest finite value (0 and 1 where there is none). Equal bounds are
/// moved apart by 0.5 each. `edges` gives the edges themselves, in ascending order; equal
/// neighbours make a bin of width 0, which stays empty (the last does not). One histogram for each
/// index of the axes that are not counted over: `axes`, `layout` and `per_sample` say which, as in
/// normalize. `weights`, shaped like x, adds a weight instead of 1; `density` divides by width and
/// sum.
///
/// Dtypes:  x bool, integers, f16, bf16, f32, f64; integers are compared with edges exactly.
/// weights likewise. Devices: cpu, cuda: the same counts; weighted sums in f64 in a fixed order on
/// each. Enqueues and returns. Errors:  invalid for edges or a range that are no such thing, for
/// more bins than there are numbers between the
///          bounds (an inferred range that is too narrow gives edges with equal neighbours), for
///          weights of another shape; unsupported for complex data.
/// Source:  numpy.histogram; unlike it, NaN and infinity do not make an inferred range fail.
HistogramResult histogram(const Array& x, const Histogram& settings, const Context& context);
HistogramResult histogram(const Array& x, const Array& weights, const Histogram& settings,
                          const Context& context);

}  // namespace forebay
