#pragma once

#include <cstdint>
#include <optional>

#include <forebay/ops/fft/transform.h>

namespace forebay {

struct Fft {
  std::optional<std::int64_t> n = {};
  std::int64_t axis = -1;
  FftNorm norm = FftNorm::backward;
  void fields(FieldVisitor& visitor);
};

/// Discrete Fourier transform along one axis.
///
///     out[k] = scale * sum over j in 0..n-1 of x[j] * exp(-2 pi i j k / n),   k = 0..n-1
///
/// Shapes:  any rank of at least 1; the axis becomes n long: cropped, or padded with zeros at the
/// end. Dtypes:  bool, u8, u16, i8, i16, f16, bf16, f32, c64 -> c64; u32, u64, i32, i64, f64, c128
/// -> c128. Real `x` runs
///          as a real transform.
/// Units:   those of `x`, times n for a constant signal with norm backward.
/// Devices: cpu, cuda. Enqueues and returns; `x` is not changed.
/// Errors:  invalid for `n` below 1, an axis that is not there, a scalar.
/// Meaning: numpy.fft.fft of NumPy 2.
Array fft(const Array& x, const Fft& settings, const Context& context);

}  // namespace forebay
