#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <type_traits>

#include <forebay/array/dtype.h>

// What the bins of a tally stand for, for those who fill a table and those who read it.
namespace forebay {

/// The bins of one dtype.
class TallyBins {
 public:
  static constexpr std::int64_t kMostBits = 12;
  /// `bits` without a value: 7 for floats, 10 for integers. Not for complex types.
  TallyBins(Dtype dtype, std::optional<std::int64_t> bits);

  /// The values +-(base + low) * 2^exponent, 0 <= low < width; width 0: none.
  struct Bin {
    enum class Kind : std::uint8_t { finite, infinite, nan };
    Kind kind = Kind::finite;
    bool negative = false;
    std::uint64_t base = 0;
    std::uint64_t width = 1;
    int exponent = 0;
  };
  Bin at(std::int64_t bin) const;

  std::int64_t count() const { return count_; }
  int bits() const { return bits_; }  ///< 0 where every value has a bin of its own
  int low_bits() const { return low_bits_; }  ///< that may be behind those of a bin
  int low_digits() const { return digits(low_bits_); }
  int square_digits() const { return digits(2 * low_bits_); }
  int words() const { return 1 + low_digits() + square_digits(); }

  /// The number whose order this is (see order_of), as a double: exact but for 64-bit integers,
  /// which round. -0 is 0.
  double value_of_order(std::uint64_t order) const;

 private:
  static constexpr int digits(int bits) { return (bits + 31) / 32; }
  Bin float_bin(std::uint64_t pattern, int exponent_bits, int fraction_bits) const;
  Bin wide_integer_bin(std::int64_t bin) const;

  Dtype dtype_;
  int bits_;
  int low_bits_ = 0;
  std::int64_t count_ = 0;
};

namespace tally_detail {

/// Exponents of f64 that have 2^bits bins each, those of f32 and a few more; others have one.
constexpr std::uint32_t kFirstExponent = 896, kExponents = 256;
constexpr std::uint32_t kF64Exponents = 2048;

/// Bins of the magnitudes of `magnitude_bits`-bit integers.
constexpr std::int64_t magnitude_bins(int magnitude_bits, int bits) {
  return static_cast<std::int64_t>(2 + magnitude_bits - bits - 1) << bits;
}

struct Place {
  std::uint32_t bin = 0;
  std::uint64_t low = 0;
};

template <class T>
using Pattern = std::conditional_t<
    sizeof(T) == 1, std::uint8_t,
    std::conditional_t<sizeof(T) == 2, std::uint16_t,
                       std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>>;

/// Where x is counted; as place_of in tally.cu.
template <class T>
inline Place place_of(T x, int bits) {
  if constexpr (sizeof(T) <= 2) {
    return {std::bit_cast<Pattern<T>>(x), 0};
  } else if constexpr (std::is_same_v<T, float>) {
    const int low_bits = 23 - bits;
    if (x != x) return {(std::uint32_t{512} << bits), 0};
    const auto pattern = std::bit_cast<std::uint32_t>(x);
    return {pattern >> low_bits, pattern & ((std::uint32_t{1} << low_bits) - 1)};
  } else if constexpr (std::is_same_v<T, double>) {
    const std::uint32_t half = kF64Exponents + (kExponents << bits);
    if (x != x) return {2 * half, 0};
    const auto pattern = std::bit_cast<std::uint64_t>(x);
    const std::uint32_t sign = pattern >> 63 != 0 ? half : 0;
    const std::uint32_t exponent = static_cast<std::uint32_t>(pattern >> 52) & 2047;
    const std::uint64_t fraction = pattern & ((std::uint64_t{1} << 52) - 1);
    const std::uint32_t inside = exponent - kFirstExponent;
    if (inside >= kExponents) return {sign + exponent, fraction};
    const int low_bits = 52 - bits;
    return {
        sign + kF64Exponents + (inside << bits) + static_cast<std::uint32_t>(fraction >> low_bits),
        fraction & ((std::uint64_t{1} << low_bits) - 1)};
  } else {
    using U = std::make_unsigned_t<T>;
    const bool negative = x < 0;
    const U magnitude = negative ? static_cast<U>(0) - static_cast<U>(x) : static_cast<U>(x);
    const std::uint32_t sign =
        negative ? static_cast<std::uint32_t>(magnitude_bins(8 * sizeof(T), bits)) : 0;
    const int low_bits = static_cast<int>(std::bit_width(magnitude)) - (bits + 1);
    if (low_bits <= 0) return {sign + static_cast<std::uint32_t>(magnitude), 0};
    return {sign + (static_cast<std::uint32_t>(low_bits) << bits) +
                static_cast<std::uint32_t>(magnitude >> low_bits),
            magnitude & ((U{1} << low_bits) - 1)};
  }
}

/// x's bit pattern as an integer that ascends with x; as order_of in tally.cu.
template <class T>
inline Pattern<T> order_of(T x) {
  using P = Pattern<T>;
  constexpr P kTop = static_cast<P>(P{1} << (8 * sizeof(T) - 1));
  const P pattern = std::bit_cast<P>(x);
  if constexpr (std::is_same_v<T, bool> || std::is_unsigned_v<T>) {
    return pattern;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<P>(pattern ^ kTop);
  } else {
    return static_cast<P>((pattern & kTop) != 0 ? ~pattern : pattern | kTop);
  }
}

/// Whether x is neither NaN nor infinite.
template <class T>
inline bool is_finite(T x) {
  if constexpr (std::is_same_v<T, Half>) {
    return (x.bits & 0x7c00) != 0x7c00;
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return (x.bits & 0x7f80) != 0x7f80;
  } else if constexpr (std::is_floating_point_v<T>) {
    return x - x == 0;
  } else {
    return true;
  }
}

}  // namespace tally_detail
}  // namespace forebay
