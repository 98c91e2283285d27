#if defined(__AVX512BW__)
#include <immintrin.h>
#endif

#include <forebay/ops/expr/cpu_loops.h>

// Rows of strided memory. Small strides are constants, which become loads of whole vectors and
// shuffles: channels of pixels, real parts of complex numbers.
namespace forebay::expr::FOREBAY_CPU_LEVEL {
namespace {

/// Memory of any element type, moved as integers, which become vector code. c64 is aligned as
/// f32, c128 as f64.
template <std::size_t Size>
struct ElementOf;
template <>
struct ElementOf<1> {
  using Type [[gnu::may_alias]] = std::uint8_t;
};
template <>
struct ElementOf<2> {
  using Type [[gnu::may_alias]] = std::uint16_t;
};
template <>
struct ElementOf<4> {
  using Type [[gnu::may_alias]] = std::uint32_t;
};
template <>
struct ElementOf<8> {
  using Type [[gnu::may_alias, gnu::aligned(4)]] = std::uint64_t;
};
template <>
struct ElementOf<16> {
  struct [[gnu::may_alias]] Type {
    std::uint64_t words[2];
  };
};

template <std::size_t Size>
void gather_row(void* to, const void* from, std::int64_t stride, std::int64_t n) {
  using T = typename ElementOf<Size>::Type;
  T* __restrict y = static_cast<T*>(to);
  const T* __restrict x = static_cast<const T*>(from);
  switch (stride) {
    case 0: {
      const T value = *x;
      for (std::int64_t i = 0; i < n; ++i)
        y[i] = value;
      return;
    }
    case 1:
      for (std::int64_t i = 0; i < n; ++i)
        y[i] = x[i];
      return;
    case 2:
      for (std::int64_t i = 0; i < n; ++i)
        y[i] = x[2 * i];
      return;
    case 3:
      for (std::int64_t i = 0; i < n; ++i)
        y[i] = x[3 * i];
      return;
    case 4:
      for (std::int64_t i = 0; i < n; ++i)
        y[i] = x[4 * i];
      return;
    case -1:
      for (std::int64_t i = 0; i < n; ++i)
        y[i] = x[-i];
      return;
    default:
      for (std::int64_t i = 0; i < n; ++i)
        y[i] = x[i * stride];
  }
}

#if defined(__AVX512BW__)
/// Bytes `Stride` apart, 64 at a time: 2 to 4 registers hold all that lies between.
template <int Stride>
__attribute__((target("avx512vbmi"))) void gather_64(void* to, const void* from, std::int64_t n) {
  struct Order {
    alignas(64) std::uint8_t place[64] = {};
    std::uint64_t behind = 0;  // which of the 64 lie in the third and fourth register
  };
  static constexpr Order kOrder = [] {
    Order order;
    for (unsigned i = 0; i < 64; ++i) {
      order.place[i] = static_cast<std::uint8_t>(i * Stride % 128);
      order.behind |= std::uint64_t{i * Stride / 128} << i;
    }
    return order;
  }();
  const __m512i order = _mm512_load_si512(kOrder.place);
  auto* const y = static_cast<std::uint8_t*>(to);
  const auto* const x = static_cast<const std::uint8_t*>(from);
  std::int64_t i = 0;
  for (; i + 64 < n; i += 64) {  // what is read behind the last one is the next one's
    const std::uint8_t* const some = x + i * Stride;
    __m512i found =
        _mm512_permutex2var_epi8(_mm512_loadu_si512(some), order, _mm512_loadu_si512(some + 64));
    if constexpr (Stride > 2) {
      const __m512i third = _mm512_loadu_si512(some + 128);
      const __m512i fourth = Stride > 3 ? _mm512_loadu_si512(some + 192) : third;
      found = _mm512_mask_blend_epi8(kOrder.behind, found,
                                     _mm512_permutex2var_epi8(third, order, fourth));
    }
    _mm512_storeu_si512(y + i, found);
  }
  gather_row<1>(y + i, x + i * Stride, Stride, n - i);
}

void gather_bytes(void* to, const void* from, std::int64_t stride, std::int64_t n) {
  if (stride == 2) return gather_64<2>(to, from, n);
  if (stride == 3) return gather_64<3>(to, from, n);
  if (stride == 4) return gather_64<4>(to, from, n);
  gather_row<1>(to, from, stride, n);
}
#endif

template <std::size_t Size>
void scatter_row(void* to, const void* from, std::int64_t stride, std::int64_t n) {
  using T = typename ElementOf<Size>::Type;
  T* __restrict y = static_cast<T*>(to);
  const T* __restrict x = static_cast<const T*>(from);
  for (std::int64_t i = 0; i < n; ++i)
    y[i * stride] = x[i];
}

}  // namespace

CpuCopy* gather_loop(std::size_t size) {
#if defined(__AVX512BW__)
  if (size == 1 && has_vbmi()) return gather_bytes;
#endif
  return loop_of_size(size, gather_row<1>, gather_row<2>, gather_row<4>, gather_row<8>,
                      gather_row<16>);
}

CpuCopy* scatter_loop(std::size_t size) {
  return loop_of_size(size, scatter_row<1>, scatter_row<2>, scatter_row<4>, scatter_row<8>,
                      scatter_row<16>);
}

}  // namespace forebay::expr::FOREBAY_CPU_LEVEL
