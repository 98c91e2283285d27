#pragma once

#include <cstdint>
#include <optional>

#include <forebay/ops/fft/transform.h>

namespace forebay {

struct Rfft {
  std::optional<std::int64_t> n = {};
  std::int64_t axis = -1;
  FftNorm norm = FftNorm::backward;
  void fields(FieldVisitor& visitor);
};

/// Discrete Fourier transform of real numbers along one axis: frequencies 0..n/2, the others are
/// their conjugates.
///
///     out[k] = scale * sum over j in 0..n-1 of x[j] * exp(-2 pi i j k / n),   k = 0..floor(n/2)
///
/// Shapes:  any rank of at least 1; the axis becomes floor(n/2)+1 long. `x` is cropped to n, or
/// padded with zeros. Dtypes:  bool, u8, u16, i8, i16, f16, bf16, f32 -> c64; u32, u64, i32, i64,
/// f64 -> c128. Devices: cpu, cuda. Enqueues and returns; `x` is not changed. Errors:  unsupported
/// for complex `x`; invalid for `n` below 1, an axis that is not there, a scalar. Meaning:
/// numpy.fft.rfft of NumPy 2.
Array rfft(const Array& x, const Rfft& settings, const Context& context);

}  // namespace forebay
