#include <cstring>

#if defined(__AVX512BW__)
#include <immintrin.h>
#endif

#include <forebay/ops/expr/cpu_loops.h>

// Elements of 8 bits to what a table of 256 says.
namespace forebay::expr::FOREBAY_CPU_LEVEL {
namespace {

template <std::size_t Size>
void look_up(void* to, const void* from, const void* table, std::int64_t n) {
  auto* const y = static_cast<std::byte*>(to);
  const auto* const x = static_cast<const std::uint8_t*>(from);
  const auto* const values = static_cast<const std::byte*>(table);
  for (std::int64_t i = 0; i < n; ++i)
    std::memcpy(y + static_cast<std::size_t>(i) * Size, values + std::size_t{x[i]} * Size, Size);
}

#if defined(__AVX512BW__)
/// The same 64 at a time: registers hold each byte of the 256 values, four of them one byte.
template <int Size>
__attribute__((target("avx512vbmi"))) void look_up_64(void* to, const void* from, const void* table,
                                                      std::int64_t n) {
  alignas(64) std::uint8_t bytes[Size][256];
  const auto* const values = static_cast<const std::uint8_t*>(table);
  for (int i = 0; i < 256 * Size; i += 64) {
    const __m512i some = _mm512_loadu_si512(values + i);
    if constexpr (Size == 1) _mm512_store_si512(bytes[0] + i, some);
    for (int k = 0; k < Size && Size == 2; ++k)
      _mm256_store_si256(reinterpret_cast<__m256i*>(bytes[k] + i / 2),
                         _mm512_cvtepi16_epi8(_mm512_srli_epi16(some, 8 * k)));
    for (int k = 0; k < Size && Size == 4; ++k)
      _mm_store_si128(reinterpret_cast<__m128i*>(bytes[k] + i / 4),
                      _mm512_cvtepi32_epi8(_mm512_srli_epi32(some, 8 * k)));
  }
  __m512i part[Size][4];
  for (int k = 0; k < Size; ++k) {
    for (int i = 0; i < 4; ++i)
      part[k][i] = _mm512_load_si512(bytes[k] + 64 * i);
  }
  // So that bytes which are put together within quarters of a register come out in their order.
  const __m512i quarters = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
  const __m512i sixteenths =
      _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  auto* const y = static_cast<std::byte*>(to);
  const auto* const x = static_cast<const std::uint8_t*>(from);
  std::int64_t i = 0;
  for (; i + 64 <= n; i += 64) {
    __m512i place = _mm512_loadu_si512(x + i);
    if constexpr (Size == 2) place = _mm512_permutexvar_epi64(quarters, place);
    if constexpr (Size == 4) place = _mm512_permutexvar_epi32(sixteenths, place);
    const __mmask64 high = _mm512_movepi8_mask(place);
    __m512i found[Size];
    for (int k = 0; k < Size; ++k) {
      found[k] =
          _mm512_mask_blend_epi8(high, _mm512_permutex2var_epi8(part[k][0], place, part[k][1]),
                                 _mm512_permutex2var_epi8(part[k][2], place, part[k][3]));
    }
    std::byte* const out = y + i * Size;
    if constexpr (Size == 1) {
      _mm512_storeu_si512(out, found[0]);
    } else {
      const __m512i low = _mm512_unpacklo_epi8(found[0], found[1]),
                    upper = _mm512_unpackhi_epi8(found[0], found[1]);
      if constexpr (Size == 2) {
        _mm512_storeu_si512(out, low);
        _mm512_storeu_si512(out + 64, upper);
      } else {
        const __m512i low2 = _mm512_unpacklo_epi8(found[2], found[3]),
                      upper2 = _mm512_unpackhi_epi8(found[2], found[3]);
        _mm512_storeu_si512(out, _mm512_unpacklo_epi16(low, low2));
        _mm512_storeu_si512(out + 64, _mm512_unpackhi_epi16(low, low2));
        _mm512_storeu_si512(out + 128, _mm512_unpacklo_epi16(upper, upper2));
        _mm512_storeu_si512(out + 192, _mm512_unpackhi_epi16(upper, upper2));
      }
    }
  }
  look_up<Size>(y + i * Size, x + i, table, n - i);
}
#endif

}  // namespace

bool has_vbmi() {
#if defined(__AVX512BW__)
  static const bool has = __builtin_cpu_supports("avx512vbmi");
  return has;
#else
  return false;
#endif
}

CpuLookup* lookup_loop(std::size_t size) {
#if defined(__AVX512BW__)
  if (has_vbmi() && size <= 4)
    return size == 1 ? look_up_64<1> : size == 2 ? look_up_64<2> : look_up_64<4>;
#endif
  return loop_of_size(size, look_up<1>, look_up<2>, look_up<4>, look_up<8>, look_up<16>);
}

}  // namespace forebay::expr::FOREBAY_CPU_LEVEL
