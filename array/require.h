#pragma once

// For .cpp files only: public headers do not include fmt.
#include <fmt/core.h>

#include <string>
#include <utility>

#include <forebay/array/error.h>
#include <forebay/array/view.h>

namespace forebay {

template <class... Args>
[[noreturn]] void fail(ErrorKind kind, fmt::format_string<Args...> text, Args&&... args) {
  throw Error(kind, fmt::format(text, std::forward<Args>(args)...));
}

/// `(3, 224, 224)`, `(5,)`, `()`: NumPy's way of writing a shape.
std::string to_string(const Dims& dims);
/// `cpu`, `cuda:0`.
std::string to_string(Device device);

}  // namespace forebay

/// Checked in every build type; the message is built only when the condition fails.
#define FOREBAY_REQUIRE(condition, kind, ...)                   \
  do {                                                          \
    if (!(condition)) [[unlikely]]                              \
      ::forebay::fail(::forebay::ErrorKind::kind, __VA_ARGS__); \
  } while (false)
