#pragma once

#include <optional>

#include <forebay/ops/eager.h>

namespace forebay {

/// Settings of log1p.
struct Log1p {
  std::optional<Dtype> dtype = {};
  void fields(FieldVisitor& visitor);
};

/// The natural logarithm of 1 + x, exact also near 0.
///
///     out = ln(1 + x)
///
/// Shapes:  out as x, any.
/// Dtypes:  x bool, integers and floats; out as x when that is a float, else f32, or the float type
/// `dtype`. Computed in
///          f64 when x or out is f64, else in f32, and rounded once to out.
///          -1 gives -infinity, values below NaN.
/// Devices: cpu, cuda; each within 2 ulp of the true value of the (converted) input.
/// Errors:  unsupported for complex x; invalid for a `dtype` that is no float type.
/// Source:  numpy.log1p.
Array log1p(const Array& x, const Log1p& settings, const Context& context);

}  // namespace forebay
