#pragma once

#include <forebay/ops/eager.h>

namespace forebay {

/// abs has no settings.
struct Abs {
  void fields(FieldVisitor&) {}
};

/// The absolute value; of a complex number its magnitude.
///
///     out = |x|, or sqrt(re^2 + im^2) without overflow on the way
///
/// Shapes:  out as x, any.
/// Dtypes:  all. out as x, but f32 for c64 and f64 for c128. The least value of a signed integer
/// type, which has no
///          counterpart, stays (-128 for i8), as in NumPy. Infinite when a part is infinite, even
///          beside NaN.
/// Devices: cpu, cuda; the same bits, but for c128 within 2 ulp.
/// Source:  numpy.abs.
Array abs(const Array& x, const Abs& settings, const Context& context);

}  // namespace forebay
