#include <forebay/pipeline/config/scalar.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

namespace forebay::config {
namespace {

constexpr std::string_view kTooLarge = "it must fit 64 bits";

bool one_of(std::string_view text, std::initializer_list<std::string_view> spellings) {
  return std::find(spellings.begin(), spellings.end(), text) != spellings.end();
}

/// The sign, digits and base of an integer; no value for other text.
struct Integer {
  bool negative = false;
  std::string_view digits;
  int base = 10;
};
std::optional<Integer> as_integer(std::string_view text) {
  Integer integer;
  if (text.starts_with("0x") || text.starts_with("0o")) {
    integer.base = text[1] == 'x' ? 16 : 8;
    text.remove_prefix(2);
  } else if (text.starts_with('-') || text.starts_with('+')) {
    integer.negative = text[0] == '-';
    text.remove_prefix(1);
  }
  const auto is_digit = [&](char c) {
    if (integer.base == 16 && ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'))) return true;
    return c >= '0' && c <= (integer.base == 8 ? '7' : '9');
  };
  if (text.empty() || !std::all_of(text.begin(), text.end(), is_digit)) return std::nullopt;
  integer.digits = text;
  return integer;
}

/// No value where it does not fit a Number.
std::optional<Number> value_of(const Integer& integer) {
  std::uint64_t magnitude = 0;
  const auto [end, error] =
      std::from_chars(integer.digits.data(), integer.digits.data() + integer.digits.size(),
                      magnitude, integer.base);
  if (error != std::errc()) return std::nullopt;
  if (!integer.negative) return Number(magnitude);
  constexpr std::uint64_t kLowest = std::uint64_t{1} << 63;
  if (magnitude > kLowest) return std::nullopt;
  return Number(static_cast<std::int64_t>(-magnitude));
}

enum class Float { read, not_a_float, too_large };

Float read_float(std::string_view text, double& value) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (one_of(text, {".inf", ".Inf", ".INF"})) {
    value = std::numeric_limits<double>::infinity();
  } else if (one_of(text, {".nan", ".NaN", ".NAN"})) {
    value = std::numeric_limits<double>::quiet_NaN();
  } else {
    // from_chars also reads "inf", "nan" and another sign, which YAML does not.
    const bool plain = !text.empty() && (text[0] == '.' || (text[0] >= '0' && text[0] <= '9'));
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (!plain || error == std::errc::invalid_argument || end != text.data() + text.size())
      return Float::not_a_float;
    if (error != std::errc()) return Float::too_large;
  }
  if (negative) value = -value;
  return Float::read;
}

}  // namespace

std::string read(const Node& node, bool& value) {
  const bool plain = node.kind == Node::Kind::scalar && !node.quoted;
  if (plain && one_of(node.text, {"true", "True", "TRUE"})) {
    value = true;
  } else if (plain && one_of(node.text, {"false", "False", "FALSE"})) {
    value = false;
  } else {
    return "it must be true or false";
  }
  return {};
}

std::string read(const Node& node, Number& value) {
  if (node.kind != Node::Kind::scalar || node.quoted) return "it must be a number";
  if (const auto integer = as_integer(node.text)) {
    const auto number = value_of(*integer);
    if (!number) return std::string(kTooLarge) + ", or be written with a point";
    value = *number;
    return {};
  }
  double real = 0;
  switch (read_float(node.text, real)) {
    case Float::not_a_float:
      return "it must be a number";
    case Float::too_large:
      return "it must fit a double";
    case Float::read:
      value = real;
  }
  return {};
}

std::string read(const Node& node, std::int64_t& value) {
  const auto integer =
      node.kind == Node::Kind::scalar && !node.quoted ? as_integer(node.text) : std::nullopt;
  if (!integer) return "it must be an integer";
  const auto number = value_of(*integer);
  if (!number || number->kind() != Number::Kind::i64) return std::string(kTooLarge);
  value = number->i64();
  return {};
}

std::string read(const Node& node, double& value) {
  // A double has no trouble with an integer of any length.
  if (node.kind == Node::Kind::scalar && !node.quoted &&
      read_float(node.text, value) == Float::read)
    return {};
  Number number;
  const std::string wrong = read(node, number);
  if (wrong.empty()) value = number.f64();
  return wrong;
}

std::string read(const Node& node, std::string& value) {
  if (node.kind != Node::Kind::scalar) return "it must be text";
  value = node.text;
  return {};
}

}  // namespace forebay::config
