#include <cmath>

#include <fmt/core.h>

#include <forebay/array/number.h>

namespace forebay {

std::string to_string(const Number& number) {
  if (number.kind() == Number::Kind::i64) return fmt::format("{}", number.i64());
  if (number.kind() == Number::Kind::u64) return fmt::format("{}", number.u64());
  std::string text = fmt::format("{}", number.f64());
  if (std::isfinite(number.f64()) && text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

}  // namespace forebay
