#pragma once

#include <bit>
#include <cstdint>

namespace forebay::expr {

/// The host's half of `Divisor` in expr.cu: n / d = n * multiplier >> shift for every n that a
/// non-negative i32 (`wide`: i64) holds. In the wide form 63 bits of the shift are in the
/// device's code.
/// Source: Granlund and Montgomery, Division by invariant integers using multiplication, 1994: with
/// 2^s >= d, multiplier = ceil(2^(31 + s) / d) is off by less than 2^s, so the product by less than
/// 2^(31 + s) / d.
struct Divisor {
  std::uint64_t multiplier = 0, shift = 0;

  Divisor(std::int64_t d, bool wide) {
    const auto divisor = static_cast<std::uint64_t>(d);
    const int s = std::bit_width(divisor - 1), bits = (wide ? 63 : 31) + s;
    shift = static_cast<std::uint64_t>(wide ? s : bits);
    // 2^bits / d by long division, as it has up to 127 bits.
    std::uint64_t rest = 0;
    for (int bit = bits; bit >= 0; --bit) {
      rest = rest * 2 + (bit == bits ? 1 : 0);
      multiplier = multiplier * 2 + (rest >= divisor ? 1 : 0);
      if (rest >= divisor) rest -= divisor;
    }
    if (rest != 0) ++multiplier;
  }
};

}  // namespace forebay::expr
