#pragma once

// Internal: integers of any size, and quotients and roots of them as doubles, rounded once.

#include <compare>
#include <cstdint>
#include <vector>

namespace forebay::fit_detail {

using Wide = unsigned __int128;

/// An integer of at least 0.
class Natural {
 public:
  Natural() = default;
  explicit Natural(Wide value);

  /// += value * 2^shift.
  void add(const Natural& value, int shift = 0);
  /// -= value, which must not be greater.
  void subtract(const Natural& value);
  Natural shifted(int bits) const;  ///< * 2^bits, rounded down
  bool is_zero() const { return words_.empty(); }
  int bit_width() const;
  bool bit(int i) const;
  /// Whether all bits below `i` are 0.
  bool ends_in_zeros(int i) const;
  std::uint64_t low_word() const;

  friend Natural operator*(const Natural& a, const Natural& b);
  friend std::strong_ordering operator<=>(const Natural& a, const Natural& b);
  friend bool operator==(const Natural& a, const Natural& b) = default;

 private:
  void trim();
  std::vector<std::uint32_t> words_;  ///< least first; the last is not 0
};

/// number / divisor * 2^exponent, rounded once to nearest even. `divisor` is not 0.
double quotient(const Natural& number, const Natural& divisor, int exponent);
/// sqrt(number) / divisor * 2^exponent, likewise.
double root_quotient(const Natural& number, const Natural& divisor, int exponent);

}  // namespace forebay::fit_detail
