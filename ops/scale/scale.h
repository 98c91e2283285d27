#pragma once

#include <optional>

#include <forebay/ops/eager.h>

namespace forebay {

/// Settings of scale.
struct Scale {
  double factor = 1;
  double offset = 0;
  std::optional<Dtype> dtype = {};
  void fields(FieldVisitor& visitor);
};

/// Multiplies by a factor and adds an offset.
///
///     out = x * factor + offset
///
/// Shapes:  out as x, any.
/// Dtypes:  x bool, integers and floats; out as x when that is a float, else f32, or the float type
/// `dtype`. Computed in
///          f64 when x or out is f64, else in f32: two rounded operations on factor and offset as
///          that type holds them; then rounded to out. A factor of 1 and an offset of 0 are no
///          operations.
/// Units:   `factor` is out's unit over x's, `offset` has out's.
/// Devices: cpu, cuda; the same bits.
/// Errors:  unsupported for complex x; invalid for a `dtype` that is no float type.
Array scale(const Array& x, const Scale& settings, const Context& context);

}  // namespace forebay
