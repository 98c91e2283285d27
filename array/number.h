#pragma once

#include <concepts>
#include <cstdint>
#include <string>

namespace forebay {

/// A number as the user wrote it: an integer stays exact (never through f64), a float stays
/// a float.
class Number {
 public:
  enum class Kind : std::uint8_t { i64, u64, f64 };

  constexpr Number() : i64_(0) {}
  template <std::signed_integral T>
  constexpr Number(T value)
      : i64_(value) {}  // NOLINT(google-explicit-constructor): reads as a literal
  template <std::unsigned_integral T>
  constexpr Number(T value)
      : kind_(Kind::u64), u64_(value) {  // NOLINT(google-explicit-constructor)
    if (value <= static_cast<std::uint64_t>(INT64_MAX)) {
      kind_ = Kind::i64;
      i64_ = static_cast<std::int64_t>(value);
    }
  }
  template <std::floating_point T>
  constexpr Number(T value)
      : kind_(Kind::f64), f64_(value) {}  // NOLINT(google-explicit-constructor)

  /// i64 for every integer that fits it, u64 for those above, f64 for what was written as a float.
  constexpr Kind kind() const { return kind_; }
  constexpr bool is_integer() const { return kind_ != Kind::f64; }
  constexpr std::int64_t i64() const { return i64_; }
  constexpr std::uint64_t u64() const { return u64_; }
  /// The nearest double.
  constexpr double f64() const {
    return kind_ == Kind::f64   ? f64_
           : kind_ == Kind::i64 ? static_cast<double>(i64_)
                                : static_cast<double>(u64_);
  }
  friend constexpr bool operator==(const Number& a, const Number& b) {
    if (a.kind_ != b.kind_) return false;
    return a.kind_ == Kind::f64 ? a.f64_ == b.f64_ : a.u64_ == b.u64_;
  }

 private:
  Kind kind_ = Kind::i64;
  union {
    std::int64_t i64_;
    std::uint64_t u64_;
    double f64_;
  };
};

/// The shortest text that reads back as the same number; a float always has a point or an exponent.
std::string to_string(const Number& number);

}  // namespace forebay
