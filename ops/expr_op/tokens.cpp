#include <forebay/ops/expr_op/tokens.h>

#include <algorithm>
#include <functional>
#include <utility>

#include <fmt/core.h>

namespace forebay::expr {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
/// A byte of a UTF-8 character that is not its first.
bool continues(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

/// How long the number at the start of `text` is; 0 when there is none.
std::size_t number_length(std::string_view text) {
  const auto peek = [&](std::size_t i) { return i < text.size() ? text[i] : '\0'; };
  if (!is_digit(peek(0)) && !(peek(0) == '.' && is_digit(peek(1)))) return 0;
  std::size_t length = 0;
  while (is_digit(peek(length)) || peek(length) == '.')
    ++length;
  const std::size_t sign = peek(length + 1) == '+' || peek(length + 1) == '-' ? 1 : 0;
  if ((peek(length) != 'e' && peek(length) != 'E') || !is_digit(peek(length + 1 + sign)))
    return length;
  for (length += 1 + sign; is_digit(peek(length));)
    ++length;
  return length;
}

}  // namespace

bool Tokens::is_name() const { return !token_.empty() && is_letter(token_[0]); }
bool Tokens::is_number() const { return number_length(token_) > 0; }

int Tokens::column() const {
  return 1 + static_cast<int>(std::ranges::count_if(text_.substr(0, at_), std::not_fn(continues)));
}

void Tokens::advance() {
  constexpr std::string_view kPairs[] = {"**", "<=", ">=", "==", "!=", "//", "&&", "||"};
  at_ = std::min(text_.find_first_not_of(" \t\r\n", at_ + token_.size()), text_.size());
  const std::string_view rest = text_.substr(at_);
  std::size_t length = number_length(rest);
  if (rest.empty()) {
    length = 0;
  } else if (is_letter(rest[0])) {
    while (length < rest.size() && (is_letter(rest[length]) || is_digit(rest[length])))
      ++length;
  } else if (length == 0) {
    length = std::ranges::count(kPairs, rest.substr(0, 2)) > 0 ? 2 : 1;
    while (length < rest.size() && continues(rest[length]))
      ++length;
  }
  token_ = rest.substr(0, length);
}

bool Tokens::accept(std::string_view token) {
  if (token_ != token) return false;
  advance();
  return true;
}

std::string Tokens::found() const {
  constexpr std::pair<std::string_view, std::string_view> kHints[] = {
      {"and", "& between bools, in parentheses"},
      {"&&", "& between bools, in parentheses"},
      {"or", "| between bools, in parentheses"},
      {"||", "| between bools, in parentheses"},
      {"not", "~ before a bool"},
      {"!", "~ before a bool"},
      {"=", "== to compare"},
      {"//", "floor(a / b)"},
      {"^", "** for a power"}};
  if (token_.empty()) return "the end.";
  const auto hint = std::ranges::find(kHints, token_, [](const auto& pair) { return pair.first; });
  if (hint == std::end(kHints)) return fmt::format("`{}`.", token_);
  return fmt::format("`{}`. Write {}.", token_, hint->second);
}

}  // namespace forebay::expr
