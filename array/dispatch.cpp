#include <algorithm>
#include <span>
#include <utility>

#include <forebay/array/dispatch.h>
#include <forebay/array/require.h>

namespace forebay {

void fail_dtype(const char* op, const char* argument, Dtype dtype, const Dtype* allowed,
                int count) {
  const std::span<const Dtype> list(allowed, static_cast<std::size_t>(count));
  const bool all_integers = std::ranges::count_if(list, is_integer) == 8;
  std::string text;
  bool integers_said = false;
  for (const Dtype candidate : list) {
    const bool shortened = all_integers && is_integer(candidate);
    if (shortened && std::exchange(integers_said, true)) continue;
    text +=
        fmt::format("{}{}", text.empty() ? "" : ", ", shortened ? "integers" : name_of(candidate));
  }
  fail(ErrorKind::unsupported, "{}: `{}` has dtype {}; supported: {}.", op, argument,
       name_of(dtype), text);
}

}  // namespace forebay
