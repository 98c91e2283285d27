#pragma once

#include <optional>

#include <forebay/ops/eager.h>

namespace forebay {

/// Settings of clip: at least one bound.
struct Clip {
  std::optional<Number> min = {};
  std::optional<Number> max = {};
  std::optional<Dtype> dtype = {};
  void fields(FieldVisitor& visitor);
};

/// Limits each element to [min, max].
///
///     out = minimum(maximum(x, min), max)
///
/// Shapes:  out as x, any.
/// Dtypes:  x integers and floats; out as x, or `dtype` (an integer or float type).
///          NaN in x or in a bound gives NaN; min > max gives max. Bounds of integers are compared
///          exactly, whatever their size, and may lie outside the dtype. Bounds of floats are
///          rounded to x's dtype, or to a float `dtype`. Conversion to `dtype` saturates.
/// Devices: cpu, cuda; the same bits.
/// Errors:  unsupported for bool and complex x; invalid without bounds, and for a float bound on
/// integers unless
///          `dtype` is a float type.
/// Source:  numpy.clip (NumPy 2).
Array clip(const Array& x, const Clip& settings, const Context& context);

}  // namespace forebay
