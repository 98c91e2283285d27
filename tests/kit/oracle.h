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

/// Values at which a type, or a conversion from it, changes behaviour.
template <class T>
std::vector<T> edge_values() {
  std::vector<T> values;
  if constexpr (std::is_same_v<T, bool>) {
    values = {false, true};
  } else if constexpr (std::is_integral_v<T>) {
    using Limits = std::numeric_limits<T>;
    for (const T end : {Limits::min(), Limits::max()}) {
      for (int step = 0; step < 3; ++step)
        values.push_back(static_cast<T>(end == Limits::min() ? end + step : end - step));
    }
    for (int value : {0, 1, 2, 3, 5, 7, 10, -1, -2, -3, -7})
      values.push_back(static_cast<T>(value));
    for (int bit = 6; bit < Limits::digits; ++bit) {
      for (int step : {-1, 0, 1})
        values.push_back(static_cast<T>((T(1) << bit) + static_cast<T>(step)));
    }
    if constexpr (sizeof(T) == 8) {  // ties of f32, f16 and bf16, and just beside them
      for (T base : {T(1) << 60, T(1) << 62}) {
        for (T tie : {T(1) << 36, T(1) << 51, T(1) << 53}) {
          for (int step : {-1, 0, 1})
            values.push_back(static_cast<T>(base + tie + static_cast<T>(step)));
        }
      }
    }
  } else {
    constexpr Format format = format_of<T>();
    const auto add = [&](long double x) {
      values.push_back(round_to<T>(x));
      values.push_back(round_to<T>(-x));
    };
    for (long double x : {0.0L, 0.25L, 0.5L, 0.75L, 1.0L, 1.5L, 2.0L, 2.5L, 3.3L, 7.0L, 10.0L,
                          88.0L, 1e-3L, 1e-8L, 1e3L, 1e12L})
      add(x);
    for (int exponent :
         {7, 8, 15, 16, 31, 32, 63, 64}) {  // the ends of the integers, and beside them
      const long double end = std::ldexp(1.0L, exponent);
      add(end);
      add(end - std::max(ulp(format, end) / 2, 1.0L));
      add(end - 0.5L);
      add(end + std::max(ulp(format, end), 1.0L));
    }
    for (long double x : {65504.0L, 65520.0L, 65519.99L, 3.38953139e38L, 3.4e38L, 3.4028236e38L})
      add(x);  // the ends of floats
    for (int exponent : {-14, -24, -25, -126, -133, -134, -149, -150})
      add(std::ldexp(1.0L, exponent));
    for (long double x : {1.00048828125L, 1.00390625L, 1.01171875L, 1.0009765625L + 1e-12L})
      add(x);  // ties of f16 and bf16
    add(std::ldexp(1.0L, format.least));
    add(std::ldexp(1.0L, format.least - format.digits + 1));
    add(std::ldexp(2.0L - std::ldexp(1.0L, 1 - format.digits), format.greatest));
    add(std::numeric_limits<long double>::infinity());
    values.push_back(round_to<T>(std::numeric_limits<long double>::quiet_NaN()));
  }
  return values;
}

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

}  // namespace forebay::kit
