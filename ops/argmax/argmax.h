#pragma once

#include <cstdint>

#include <forebay/ops/eager.h>
#include <forebay/ops/slices.h>

namespace forebay {

/// Settings of argmax.
struct Argmax {
  std::int64_t axis = -1;
  bool keepdims = false;
  void fields(FieldVisitor& visitor);
};

/// The position of the greatest element along an axis, counted from 0; the first of equal ones. NaN
/// is greater than every number, so the position of the first NaN where there is one; -0 equals 0.
///
///     out[i, j] = min { k : x[i, k, j] = max over all k of x[i, k, j] }
///
/// Shapes:  x any rank of at least 1; out as x without `axis`, or with an extent of 1 there for
///          `keepdims`.
/// Dtypes:  x bool, integers, f16, bf16, f32, f64, each compared exactly; out i64.
/// Devices: cpu, cuda; the same positions. Enqueues and returns.
/// Errors:  unsupported for complex x; invalid for a scalar, an axis that is not there, an axis of
///          extent 0.
/// Source:  numpy.argmax.
Array argmax(const Array& x, const Argmax& settings, const Context& context);

namespace argmax_detail {

/// `shape` cut along the axis that is searched: one slice for each element of the result, in order.
Slices searched_slices(const Argmax& settings, const Dims& shape);

}  // namespace argmax_detail
}  // namespace forebay
