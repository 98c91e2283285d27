#include <forebay/ops/expr/cpu_loops.h>

namespace forebay::expr::FOREBAY_CPU_LEVEL {
namespace {

using CastTypes = Types<Bool, std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t,
                        std::int8_t, std::int16_t, std::int32_t, std::int64_t, Half, BFloat16,
                        float, double, std::complex<float>, std::complex<double>>;

/// Integers of up to 16 bits are exact in f32, where rounding them to f16 is one instruction.
template <class To, class From>
inline constexpr bool kThroughFloat = std::is_same_v<To, Half>&& std::is_integral_v<From> &&
                                      sizeof(From) <= 2;

template <class To, class From>
void saturate_loop(void* out, const Operand* operands, std::int64_t n) {
  for_chunks(n, [&](std::int64_t first, std::int64_t count) {
    const Chunk<From> a(operands[0], first, count);
    const auto* __restrict x = a.data();
    if constexpr (std::is_same_v<To, Half> && std::is_same_v<From, float>) {
      narrow(x, static_cast<Half*>(out) + first, count);
    } else if constexpr (kThroughFloat<To, From>) {
      ResultChunk<Half> result(out, first);
      float* __restrict to = result.data();
      for (std::int64_t i = 0; i < count; ++i)
        to[i] = saturate<float>(x[i]);
      result.finish(count);
    } else {
      To* __restrict to = static_cast<To*>(out) + first;
      for (std::int64_t i = 0; i < count; ++i)
        to[i] = saturate<To>(x[i]);
    }
  });
}

/// Modulo 2^bits: between integers a plain conversion.
template <class To, class From>
void wrap_loop(void* out, const Operand* operands, std::int64_t n) {
  for_chunks(n, [&](std::int64_t first, std::int64_t count) {
    To* __restrict to = static_cast<To*>(out) + first;
    const From* __restrict x = at<From>(operands[0], first);
    for (std::int64_t i = 0; i < count; ++i)
      to[i] = static_cast<To>(x[i]);
  });
}

}  // namespace

CpuLoop* cast_loop(Opcode opcode, Dtype from, Dtype to) {
  if (opcode != Opcode::cast_saturate && opcode != Opcode::cast_wrap) return nullptr;
  CpuLoop* loop = nullptr;
  if (opcode == Opcode::cast_wrap && is_integer(from) && is_integer(to)) {
    dispatch(IntegerTypes{}, from, "cast", "x", [&]<class From>(Type<From>) {
      dispatch(IntegerTypes{}, to, "cast", "dtype",
               [&]<class To>(Type<To>) { loop = wrap_loop<To, From>; });
    });
    return loop;
  }
  dispatch(CastTypes{}, from, "cast", "x", [&]<class From>(Type<From>) {
    dispatch(CastTypes{}, to, "cast", "dtype", [&]<class To>(Type<To>) {
      if constexpr (!is_complex_type<From> || is_complex_type<To> || std::is_same_v<To, Bool>) {
        loop = saturate_loop<To, From>;
      }
    });
  });
  return loop;
}

}  // namespace forebay::expr::FOREBAY_CPU_LEVEL
