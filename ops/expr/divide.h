#pragma once

#include <bit>
#include <cstdint>

#include <forebay/ops/expr/elementary.h>

// Division of many by one, without a division for each: the bits of `/`.
namespace forebay::expr::FOREBAY_CPU_LEVEL {

/// x[i] / divisor for finite numbers of moderate size, by multiplications with the reciprocal. The
/// quotient of a first approximation, which is off by less than one unit in the last place, becomes
/// the correctly rounded one by its exact remainder. Source: Markstein, "IA-64 and elementary
/// functions" (2000), theorem 8.1; Muller et al., "Handbook of floating-point arithmetic", 4.7.
/// Needs fused multiply-adds, whose results are exact here but for the last rounding.
template <class T>
class Divisor {
 public:
  explicit Divisor(T divisor)
      : divisor_(divisor), high_(T(1) / divisor), low_(fma(-divisor, high_, T(1)) / divisor) {}
  /// Whether it is faster here than division: f64 needs the largest of 64-bit integers as well,
  /// which AVX2 lacks.
  bool is_usable() const {
#if defined(__AVX512F__)
    constexpr bool kFast = true;
#elif defined(__FMA__)
    constexpr bool kFast = std::is_same_v<T, float>;
#else
    constexpr bool kFast = false;
#endif
    return kFast && divisor_ >= power(-kMost / 2) && divisor_ <= power(kMost / 2);
  }

  /// out[i] = numerator(i) / divisor. False when a numerator is outside of what is allowed: then
  /// nothing in `out` is right. Zero is inside, with its sign.
  template <class Numerator>
  bool divide(const Numerator& numerator, T* __restrict out, std::int64_t n) const {
    using Bits = typename Format<T>::Bits;
    constexpr Bits kSign = std::bit_cast<Bits>(T(-0.0));
    const Bits low = std::bit_cast<Bits>(power(-kMost)), high = std::bit_cast<Bits>(power(kMost));
    Bits least = high, most = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const T x = numerator(i);
      const Bits bits = std::bit_cast<Bits>(x) & ~kSign;
      most = bits > most ? bits : most;
      least = bits - 1 < least ? bits - 1 : least;  // zero becomes the largest number
      const T quotient = fma(x, high_, x * low_);
      const T excess = fma(quotient, divisor_, -x);
      // The steps lose the sign of zero; the divisor is positive.
      out[i] = std::bit_cast<T>(std::bit_cast<Bits>(fma(-excess, high_, quotient)) |
                                (std::bit_cast<Bits>(x) & kSign));
    }
    return most <= high && least >= low - 1;
  }

 private:
  static constexpr int kMost = std::is_same_v<T, float> ? 60 : 400;  // powers of two
  static constexpr T power(int exponent) {
    using F = Format<T>;
    return std::bit_cast<T>(static_cast<typename F::Bits>(exponent + F::kBias) << F::kFraction);
  }
  static T fma(T a, T b, T c) {
    if constexpr (std::is_same_v<T, float>)
      return __builtin_fmaf(a, b, c);
    else
      return __builtin_fma(a, b, c);
  }

  T divisor_, high_, low_;
};

}  // namespace forebay::expr::FOREBAY_CPU_LEVEL
