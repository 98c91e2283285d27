#pragma once

#include <optional>

#include <forebay/ops/eager.h>

namespace forebay {

/// Settings of sqrt.
struct Sqrt {
  std::optional<Dtype> dtype = {};
  void fields(FieldVisitor& visitor);
};

/// The square root.
///
///     out = x^(1/2), not negative
///
/// Shapes:  out as x, any.
/// Dtypes:  x bool, integers and floats; out as x when that is a float, else f32, or the float type
///          `dtype`. Computed in f64 when x or out is f64, else in f32, and rounded once to out.
///          Negative numbers and NaN give NaN, -0 gives -0, infinity gives infinity.
/// Devices: cpu, cuda; IEEE's root of the (converted) input, so both give the same bits.
/// Errors:  unsupported for complex x; invalid for a `dtype` that is no float type.
/// Source:  numpy.sqrt.
Array sqrt(const Array& x, const Sqrt& settings, const Context& context);

}  // namespace forebay
