#pragma once

#include <bit>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include <forebay/array/dtype.h>
#include <forebay/array/number.h>

namespace forebay::expr {

/// A bool in memory: any byte but 0 is true, whoever wrote it.
struct Bool {
  std::uint8_t bits = 0;
};

}  // namespace forebay::expr

namespace forebay {
template <>
inline constexpr Dtype dtype_of<expr::Bool> = Dtype::boolean;
}  // namespace forebay

// Conversions of single elements, inline and without branches where loops over them shall become
// vector code. The device code's prelude has the same ones.
namespace forebay::expr {

template <class T>
inline constexpr bool is_complex_type =
    std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;
template <class T>
inline constexpr bool is_half_type = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

// An element as its operations see it: f16 and bf16 as float, bool as 0 or 1, the others as they
// are.
inline float load(Half x) { return static_cast<float>(x); }
inline float load(BFloat16 x) { return static_cast<float>(x); }
inline std::uint8_t load(Bool x) { return x.bits != 0; }
template <class T>
T load(T x) {
  return x;
}

template <class T, class Value>
T store(Value x) {
  if constexpr (std::is_same_v<T, Bool>) {
    return Bool{static_cast<std::uint8_t>(x)};
  } else {
    return static_cast<T>(x);
  }
}

/// Like detail::round_to_odd, from an integer.
template <class T>
double to_double_odd(T integer) {
  using U = std::make_unsigned_t<T>;
  if constexpr (sizeof(T) < 8) {
    return static_cast<double>(integer);
  } else {
    const U magnitude = integer < 0 ? U(0) - static_cast<U>(integer) : static_cast<U>(integer);
    // Above 2^53 the lowest bits only say whether there is something; they stay far below what f16
    // and bf16 keep.
    const U sticky = (magnitude & ~U(0x7FF)) | ((magnitude & U(0x7FF)) != 0 ? U(0x800) : U(0));
    const double result = static_cast<double>((magnitude >> 53) != 0 ? sticky : magnitude);
    return integer < 0 ? -result : result;
  }
}

/// Towards zero; NaN gives 0 and values outside the nearest end of the range.
template <class To, class From>
To float_to_integer(From x) {
  using Limits = std::numeric_limits<To>;
  constexpr From kLow = static_cast<From>(Limits::min());
  constexpr From kHigh =
      From(2) * static_cast<From>(To(1) << (Limits::digits - 1));  // 2^digits, one past the largest
  constexpr From kBelowHigh = kHigh * (From(1) - std::numeric_limits<From>::epsilon() / 2);
  const From above = x > kLow ? x : kLow;  // NaN too
  const To inside = static_cast<To>(above < kBelowHigh ? above : kBelowHigh);
  const To clamped = x >= kHigh ? Limits::max() : inside;
  return x == x ? clamped : To(0);
}

template <class To, class From>
To integer_to_integer(From x) {
  using Limits = std::numeric_limits<To>;
  if constexpr (std::cmp_less(std::numeric_limits<From>::min(), Limits::min())) {
    x = x < static_cast<From>(Limits::min()) ? static_cast<From>(Limits::min()) : x;
  }
  if constexpr (std::cmp_greater(std::numeric_limits<From>::max(), Limits::max())) {
    x = x > static_cast<From>(Limits::max()) ? static_cast<From>(Limits::max()) : x;
  }
  return static_cast<To>(x);
}

/// The cast of the pointwise language: floats round to nearest even, once; integers clamp; NaN to
/// integer is 0; any number but 0 is true; a real is a complex without imaginary part. Complex to
/// real there is none.
template <class To, class From>
To saturate(From x) {
  if constexpr (std::is_same_v<From, Bool> || is_half_type<From>) {
    if constexpr (std::is_same_v<To, From>)
      return x;
    else
      return saturate<To>(load(x));
  } else if constexpr (std::is_same_v<To, Bool>) {
    if constexpr (is_complex_type<From>)
      return Bool{x.real() != 0 || x.imag() != 0};
    else
      return Bool{x != 0};
  } else if constexpr (is_complex_type<To>) {
    using Real = typename To::value_type;
    if constexpr (is_complex_type<From>)
      return To(saturate<Real>(x.real()), saturate<Real>(x.imag()));
    else
      return To(saturate<Real>(x), Real(0));
  } else if constexpr (is_half_type<To>) {
    if constexpr (std::is_floating_point_v<From>)
      return To(x);
    else
      return To(to_double_odd(x));
  } else if constexpr (std::is_floating_point_v<To>) {
    return static_cast<To>(x);
  } else if constexpr (std::is_floating_point_v<From>) {
    return float_to_integer<To>(x);
  } else {
    return integer_to_integer<To>(x);
  }
}

/// `number` as the language's cast gives it.
template <class T>
T from_number(const Number& number) {
  switch (number.kind()) {
    case Number::Kind::i64:
      return saturate<T>(number.i64());
    case Number::Kind::u64:
      return saturate<T>(number.u64());
    default:
      return saturate<T>(number.f64());
  }
}

}  // namespace forebay::expr
