#include "kit/op_bench.h"

namespace forebay::bench {
namespace {

constexpr std::int64_t kElements = 65536 * 1024;

PipelineBuilder rows(std::int64_t length, Dtype dtype = Dtype::f32) {
  return on({{kElements / length, length}, dtype});
}

/// What the transform costs alone, and between pointwise neighbours.
bool real(std::int64_t length) {
  const std::string size = std::to_string(length);
  add("rfft/f32_" + size, [=] { return rows(length).rfft({}); });
  return add("rfft/normalize_clip_power_f32_" + size, [=] {
    return rows(length)
        .normalize({.mean = 1, .std = 2})
        .clip({.min = -3, .max = 3})
        .rfft({})
        .abs()
        .log1p();
  });
}

[[maybe_unused]] const bool benches[] = {
    real(400),
    real(512),
    real(1000),
    real(1024),
    real(2048),
    real(4096),
    add("rfft/prime_f32_1021", [] { return rows(1021).rfft({}); }),
    add("rfft/ortho_f32_1024", [] { return rows(1024).rfft({.norm = FftNorm::ortho}); }),
    add("fft/f32_1024", [] { return rows(1024).fft({}); }),
    add("fft/complex_1024", [] { return rows(1024).cast({.dtype = Dtype::c64}).fft({}); }),
    add("irfft/rfft_irfft_1024", [] { return rows(1024).rfft({}).irfft({}); }),
};

}  // namespace
}  // namespace forebay::bench
