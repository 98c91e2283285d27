#pragma once

#include <cstdint>
#include <optional>

#include <forebay/ops/fft/transform.h>

namespace forebay {

struct Irfft {
  std::optional<std::int64_t> n = {};
  std::int64_t axis = -1;
  FftNorm norm = FftNorm::backward;
  void fields(FieldVisitor& visitor);
};

/// Real signal of a half spectrum along one axis, the inverse of rfft.
///
///     out[j] = scale * sum over k in 0..n-1 of X[k] * exp(+2 pi i j k / n),   j = 0..n-1; scale =
///     1/n by default, X[k] = x[k] for k <= n/2 and conj(x[n-k]) above
///
/// The imaginary parts of x[0], and of x[n/2] when n is even, are ignored: no real signal has them.
/// Shapes:  any rank of at least 1; the axis becomes n long, 2*(m-1) by default for extent m.
/// Frequencies past n/2 are
///          cropped, missing ones are zeros.
/// Dtypes:  c64 -> f32, c128 -> f64; real `x` is taken as complex with no imaginary part, by the
/// rule of fft. Devices: cpu, cuda. Enqueues and returns; `x` is not changed. Errors:  invalid for
/// `n` below 1 (also by default, for m = 1: give `n`), an axis that is not there, a scalar.
/// Meaning: numpy.fft.irfft of NumPy 2.
Array irfft(const Array& x, const Irfft& settings, const Context& context);

}  // namespace forebay
