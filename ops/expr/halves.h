#pragma once

#include <cstdint>

#include <forebay/ops/expr/convert.h>

#if defined(__F16C__)
#include <immintrin.h>
#endif

// Rows of f16 to and from f32, by the processor's instructions where the level has them: the bits
// of Half's own conversions. Included by cpu_loops.h.
namespace forebay::expr::FOREBAY_CPU_LEVEL {

#if defined(__AVX512F__)

inline void widen(const Half* x, float* y, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + i));
    _mm512_storeu_ps(y + i, _mm512_cvtph_ps(halves));
  }
  for (; i < n; ++i)
    y[i] = load(x[i]);
}
inline void narrow(const float* x, Half* y, std::int64_t n) {
  const __m256i nan = _mm256_set1_epi16(0x7fff);
  std::int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const __m512 values = _mm512_loadu_ps(x + i);
    const __mmask16 is_nan = _mm512_cmp_ps_mask(values, values, _CMP_UNORD_Q);
    const __m256i halves = _mm512_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(y + i),
                        _mm256_mask_mov_epi16(halves, is_nan, nan));
  }
  for (; i < n; ++i)
    y[i] = Half(x[i]);
}

#elif defined(__F16C__)

inline void widen(const Half* x, float* y, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x + i));
    _mm256_storeu_ps(y + i, _mm256_cvtph_ps(halves));
  }
  for (; i < n; ++i)
    y[i] = load(x[i]);
}
inline void narrow(const float* x, Half* y, std::int64_t n) {
  const __m128i nan = _mm_set1_epi16(0x7fff);
  std::int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m256 values = _mm256_loadu_ps(x + i);
    const __m256i mask = _mm256_castps_si256(_mm256_cmp_ps(values, values, _CMP_UNORD_Q));
    const __m128i is_nan =
        _mm_packs_epi32(_mm256_castsi256_si128(mask), _mm256_extracti128_si256(mask, 1));
    const __m128i halves = _mm256_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(y + i), _mm_blendv_epi8(halves, nan, is_nan));
  }
  for (; i < n; ++i)
    y[i] = Half(x[i]);
}

#else

inline void widen(const Half* __restrict x, float* __restrict y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i)
    y[i] = load(x[i]);
}
inline void narrow(const float* __restrict x, Half* __restrict y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i)
    y[i] = Half(x[i]);
}

#endif

}  // namespace forebay::expr::FOREBAY_CPU_LEVEL
