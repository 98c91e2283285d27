#pragma once

#include <forebay/array/dtype.h>

namespace forebay {

template <class T>
struct Type {
  using type = T;
};
template <class... Ts>
struct Types {};

using RealTypes = Types<std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t, std::int8_t,
                        std::int16_t, std::int32_t, std::int64_t, Half, BFloat16, float, double>;
using RealTypesAndBool =
    Types<bool, std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t, std::int8_t,
          std::int16_t, std::int32_t, std::int64_t, Half, BFloat16, float, double>;

/// Throws unsupported: "<op>: `<argument>` has dtype <dtype>; supported: <allowed>."
[[noreturn]] void fail_dtype(const char* op, const char* argument, Dtype dtype,
                             const Dtype* allowed, int count);

/// Calls `body(Type<T>{})` with the T among `Ts` whose dtype it is; an unsupported error otherwise.
template <class... Ts, class Body>
void dispatch(Types<Ts...>, Dtype dtype, const char* op, const char* argument, Body&& body) {
  const bool found = ((dtype_of<Ts> == dtype ? (body(Type<Ts>{}), true) : false) || ...);
  if (!found) [[unlikely]] {
    constexpr Dtype allowed[] = {dtype_of<Ts>...};
    fail_dtype(op, argument, dtype, allowed, sizeof...(Ts));
  }
}

}  // namespace forebay
