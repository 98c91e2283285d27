#pragma once

#include <forebay/ops/eager.h>

namespace forebay {

/// Settings of cast.
struct Cast {
  Dtype dtype = Dtype::f32;
  expr::CastMode mode = expr::CastMode::saturate;
  void fields(FieldVisitor& visitor);
};

namespace expr {
std::span<const std::string_view> names_of(CastMode mode);
}

/// Converts the elements to another dtype.
///
/// Shapes:  out as x, any.
/// Dtypes:  any to any but complex to real. Mode `saturate`:
///          to an integer: toward zero, clamped to its range, NaN gives 0;
///          to a float: rounded once to nearest even, too large values become infinite;
///          to bool: true but for 0 (NaN is true); to complex: a real gets the imaginary part 0.
///          Mode `wrap`: between integers and bool, modulo 2^bits.
/// Devices: cpu, cuda; the same bits.
/// Errors:  unsupported for complex to real, and for floats with mode `wrap`.
/// Source:  numpy.ndarray.astype, whose conversions out of range are undefined.
Array cast(const Array& x, const Cast& settings, const Context& context);

}  // namespace forebay
