#pragma once

#include <cstdint>
#include <optional>

#include <forebay/ops/fft/transform.h>

namespace forebay {

struct Ifft {
  std::optional<std::int64_t> n = {};
  std::int64_t axis = -1;
  FftNorm norm = FftNorm::backward;
  void fields(FieldVisitor& visitor);
};

/// Inverse discrete Fourier transform along one axis.
///
///     out[j] = scale * sum over k in 0..n-1 of x[k] * exp(+2 pi i j k / n),   j = 0..n-1; scale =
///     1/n by default
///
/// Shapes:  any rank of at least 1; the axis becomes n long: cropped, or padded with zeros at the
/// end. Dtypes:  as fft. Devices: cpu, cuda. Enqueues and returns; `x` is not changed. Errors:
/// invalid for `n` below 1, an axis that is not there, a scalar. Meaning: numpy.fft.ifft of
/// NumPy 2.
Array ifft(const Array& x, const Ifft& settings, const Context& context);

}  // namespace forebay
