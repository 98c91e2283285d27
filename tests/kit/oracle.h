#pragma once

#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <vector>

#include <forebay/array/array.h>
#include <forebay/array/dispatch.h>

#include "kit/kit.h"

// Exact answers for single elements, computed in another way than the library does, and the values
// worth asking for.
namespace forebay::kit {

using RealsAndBool = RealTypesAndBool;
using Integers = Types<std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t, std::int8_t,
                       std::int16_t, std::int32_t, std::int64_t>;
using Floats = Types<Half, BFloat16, float, double>;

template <class T>
inline constexpr bool is_half = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

/// The bits of a significand, the least exponent of a normal number and the greatest exponent.
struct Format {
  int digits, least, greatest;
};
template <class T>
constexpr Format format_of() {
  if constexpr (std::is_same_v<T, Half>)
    return {11, -14, 15};
  else if constexpr (std::is_same_v<T, BFloat16>)
    return {8, -126, 127};
  else if constexpr (std::is_same_v<T, float>)
    return {24, -126, 127};
  else
    return {53, -1022, 1023};
}

/// One unit in the last place of the format at `x`.
inline long double ulp(const Format& format, long double x) {
  const int exponent =
      x == 0 || !std::isfinite(x) ? format.least : std::max(std::ilogb(x), format.least);
  return std::ldexp(1.0L, exponent - format.digits + 1);
}

/// `x` rounded once, to nearest even, to the format; the bits follow without further rounding.
template <class T>
T round_to(long double x) {
  constexpr Format format = format_of<T>();
  if (std::isfinite(x)) {
    const long double unit = ulp(format, x);
    x = std::copysign(std::nearbyint(x / unit) * unit, x);
    if (std::abs(x) >= std::ldexp(1.0L, format.greatest + 1))
      x = std::copysign(std::numeric_limits<long double>::infinity(), x);
  }
  if constexpr (is_half<T>)
    return T(static_cast<float>(x));
  else
    return static_cast<T>(x);
}

/// The exact value of an element; 64-bit integers fit a long double's significand.
template <class T>
long double exact(T x) {
  if constexpr (is_half<T>)
    return static_cast<float>(x);
  else
    return static_cast<long double>(x);
}

/// What a saturating cast of `x` gives.
template <class T>
T saturated(long double x) {
  if constexpr (std::is_same_v<T, bool>) {
    return x != 0;
  } else if constexpr (std::is_integral_v<T>) {
    using Limits = std::numeric_limits<T>;
    if (std::isnan(x)) return 0;
    const long double whole = std::trunc(x);
    if (whole <= static_cast<long double>(Limits::min())) return Limits::min();
    if (whole >= static_cast<long double>(Limits::max())) return Limits::max();
    return static_cast<T>(whole);
  } else {
    return round_to<T>(x);
  }
}

/// Values at which a type (of RealsAndBool), or a conversion from it, changes behaviour.
template <class T>
std::vector<T> edge_values();

/// A dense host array of `values`.
template <class T>
Array array_of(const std::vector<T>& values) {
  if constexpr (std::is_same_v<T, bool>) {
    return generate(
        {static_cast<std::int64_t>(values.size())}, Dtype::boolean,
        [&](std::int64_t i) { return values[static_cast<std::size_t>(i)] ? 1.0 : 0.0; });
  } else {
    return Array::from<T>({static_cast<std::int64_t>(values.size())}, values);
  }
}

// The same by dtype, without a template's many instances.

/// One unit in the last place of a float dtype at `x`.
long double ulp(Dtype dtype, long double x);
long double round_to(Dtype dtype, long double x);
Array edge_values(Dtype dtype);
/// The exact value of each element of a host array of reals or bool.
std::vector<long double> exact(const Array& host);
/// A host array of `values`, each cast to `dtype` by saturation (floats: rounded).
Array saturated(Dtype dtype, const std::vector<long double>& values);

}  // namespace forebay::kit
