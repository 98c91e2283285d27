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
  switch (size) {
    case 1:
      return gather_row<1>;
    case 2:
      return gather_row<2>;
    case 4:
      return gather_row<4>;
    case 8:
      return gather_row<8>;
    default:
      return gather_row<16>;
  }
}

CpuCopy* scatter_loop(std::size_t size) {
  switch (size) {
    case 1:
      return scatter_row<1>;
    case 2:
      return scatter_row<2>;
    case 4:
      return scatter_row<4>;
    case 8:
      return scatter_row<8>;
    default:
      return scatter_row<16>;
  }
}

}  // namespace forebay::expr::FOREBAY_CPU_LEVEL
