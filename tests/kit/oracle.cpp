#include "kit/oracle.h"

#include <algorithm>

namespace forebay::kit {

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

template std::vector<bool> edge_values();
template std::vector<std::uint8_t> edge_values();
template std::vector<std::uint16_t> edge_values();
template std::vector<std::uint32_t> edge_values();
template std::vector<std::uint64_t> edge_values();
template std::vector<std::int8_t> edge_values();
template std::vector<std::int16_t> edge_values();
template std::vector<std::int32_t> edge_values();
template std::vector<std::int64_t> edge_values();
template std::vector<Half> edge_values();
template std::vector<BFloat16> edge_values();
template std::vector<float> edge_values();
template std::vector<double> edge_values();

long double ulp(Dtype dtype, long double x) {
  long double result = 0;
  dispatch(Floats{}, dtype, "oracle", "dtype",
           [&]<class T>(Type<T>) { result = ulp(format_of<T>(), x); });
  return result;
}

long double round_to(Dtype dtype, long double x) {
  long double result = 0;
  dispatch(Floats{}, dtype, "oracle", "dtype",
           [&]<class T>(Type<T>) { result = exact(round_to<T>(x)); });
  return result;
}

Array edge_values(Dtype dtype) {
  Array result;
  dispatch(RealsAndBool{}, dtype, "oracle", "dtype",
           [&]<class T>(Type<T>) { result = array_of(edge_values<T>()); });
  return result;
}

std::vector<long double> exact(const Array& host) {
  std::vector<long double> result(static_cast<std::size_t>(host.count()));
  dispatch(RealsAndBool{}, host.dtype(), "oracle", "host", [&]<class T>(Type<T>) {
    const T* values = host.as<T>();
    std::transform(values, values + host.count(), result.begin(), [](T x) { return exact(x); });
  });
  return result;
}

Array saturated(Dtype dtype, const std::vector<long double>& values) {
  Array result;
  dispatch(RealsAndBool{}, dtype, "oracle", "dtype", [&]<class T>(Type<T>) {
    std::vector<T> cast;
    for (const long double x : values)
      cast.push_back(saturated<T>(x));
    result = array_of(cast);
  });
  return result;
}

}  // namespace forebay::kit
