#pragma once

#include <optional>

#include <forebay/ops/eager.h>

namespace forebay {

/// Settings of exp.
struct Exp {
  std::optional<Dtype> dtype = {};
  void fields(FieldVisitor& visitor);
};

/// The exponential.
///
///     out = e^x
///
/// Shapes:  out as x, any.
/// Dtypes:  x bool, integers and floats; out as x when that is a float, else f32, or the float type
/// `dtype`. Computed in
///          f64 when x or out is f64, else in f32, and rounded once to out.
///          Values too large for the type give infinity, values far below 0 give 0.
/// Devices: cpu, cuda; each within 2 ulp of the true value of the (converted) input.
/// Errors:  unsupported for complex x; invalid for a `dtype` that is no float type.
/// Source:  numpy.exp.
Array exp(const Array& x, const Exp& settings, const Context& context);

}  // namespace forebay
