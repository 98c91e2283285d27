#pragma once

#include <bit>
#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace forebay {

/// The element types of an array. `u8` is NumPy's uint8, `c64` is complex64 (two f32). The order is
/// part of the plan's hash: append only.
enum class Dtype : std::uint8_t {
  boolean,
  u8,
  u16,
  u32,
  u64,
  i8,
  i16,
  i32,
  i64,
  f16,
  bf16,
  f32,
  f64,
  c64,
  c128,
};

inline constexpr Dtype kAllDtypes[] = {Dtype::boolean, Dtype::u8,  Dtype::u16,  Dtype::u32,
                                       Dtype::u64,     Dtype::i8,  Dtype::i16,  Dtype::i32,
                                       Dtype::i64,     Dtype::f16, Dtype::bf16, Dtype::f32,
                                       Dtype::f64,     Dtype::c64, Dtype::c128};

/// Host storage of the 16-bit floats. Arithmetic happens in float; conversion rounds to nearest
/// even, once also from double; every NaN becomes 0x7fff, as on CUDA. The conversions have no
/// branches, so that loops over them vectorise.
struct Half {
  std::uint16_t bits = 0;
  Half() = default;
  explicit Half(float value);
  template <std::same_as<double> T>
  explicit Half(T value);
  explicit operator float() const;
};
struct BFloat16 {
  std::uint16_t bits = 0;
  BFloat16() = default;
  explicit BFloat16(float value);
  template <std::same_as<double> T>
  explicit BFloat16(T value);
  explicit operator float() const;
};

/// Bytes of one element: 1, 2, 4, 8 or 16.
std::size_t size_of(Dtype dtype);

/// `bool`, `u8` .. `u64`, `i8` .. `i64`, `f16`, `bf16`, `f32`, `f64`, `c64`, `c128`.
std::string_view name_of(Dtype dtype);

/// The dtype called `name`; NumPy's names (`float32`, `uint8`, `complex64`) are accepted too.
/// Errors: invalid for another name; the text lists the names there are.
Dtype dtype_from_name(std::string_view name);

constexpr bool is_complex(Dtype d) { return d == Dtype::c64 || d == Dtype::c128; }
constexpr bool is_float(Dtype d) { return d >= Dtype::f16 && d <= Dtype::f64; }
constexpr bool is_unsigned(Dtype d) { return d >= Dtype::u8 && d <= Dtype::u64; }
constexpr bool is_signed(Dtype d) { return d >= Dtype::i8 && d <= Dtype::i64; }
constexpr bool is_integer(Dtype d) { return is_unsigned(d) || is_signed(d); }

/// The real type of a complex one (c64 -> f32, c128 -> f64); any other type is its own.
constexpr Dtype real_of(Dtype d) {
  return d == Dtype::c64 ? Dtype::f32 : d == Dtype::c128 ? Dtype::f64 : d;
}
/// The complex type over a float: f64 -> c128, every other real type -> c64.
constexpr Dtype complex_of(Dtype d) {
  return d == Dtype::f64 || d == Dtype::c128 ? Dtype::c128 : Dtype::c64;
}

/// C++ type -> Dtype, and back through dispatch.h.
template <class T>
inline constexpr Dtype dtype_of = [] {
  static_assert(sizeof(T) == 0, "no Dtype for this C++ type");
  return Dtype::u8;
}();
template <>
inline constexpr Dtype dtype_of<bool> = Dtype::boolean;
template <>
inline constexpr Dtype dtype_of<std::uint8_t> = Dtype::u8;
template <>
inline constexpr Dtype dtype_of<std::uint16_t> = Dtype::u16;
template <>
inline constexpr Dtype dtype_of<std::uint32_t> = Dtype::u32;
template <>
inline constexpr Dtype dtype_of<std::uint64_t> = Dtype::u64;
template <>
inline constexpr Dtype dtype_of<std::int8_t> = Dtype::i8;
template <>
inline constexpr Dtype dtype_of<std::int16_t> = Dtype::i16;
template <>
inline constexpr Dtype dtype_of<std::int32_t> = Dtype::i32;
template <>
inline constexpr Dtype dtype_of<std::int64_t> = Dtype::i64;
template <>
inline constexpr Dtype dtype_of<Half> = Dtype::f16;
template <>
inline constexpr Dtype dtype_of<BFloat16> = Dtype::bf16;
template <>
inline constexpr Dtype dtype_of<float> = Dtype::f32;
template <>
inline constexpr Dtype dtype_of<double> = Dtype::f64;
template <>
inline constexpr Dtype dtype_of<std::complex<float>> = Dtype::c64;
template <>
inline constexpr Dtype dtype_of<std::complex<double>> = Dtype::c128;

namespace detail {

/// `yes` or `no` without a branch: before a choice between results of float arithmetic compilers
/// keep one, as the unused one might trap.
constexpr std::uint32_t select(bool condition, std::uint32_t yes, std::uint32_t no) {
  return no ^ ((yes ^ no) & (0u - static_cast<std::uint32_t>(condition)));
}

/// `value` as a float whose last bit says whether anything was lost (round to odd): rounding it
/// once more, to at most 22 bits, gives what rounding `value` itself gives.
inline float round_to_odd(double value) {
  const float nearest = static_cast<float>(value);
  const auto bits = std::bit_cast<std::uint32_t>(nearest);
  const double back = nearest;
  if (back == value || value != value || (bits & 1) != 0) return nearest;
  const bool towards_zero = value < 0 ? back < value : back > value;
  return std::bit_cast<float>(towards_zero ? bits - 1 : bits + 1);
}

}  // namespace detail

inline Half::Half(float value) {
  // Scaling overflows to infinity what half cannot hold; adding a power of two then makes the adder
  // round at half's last bit, which lies higher for subnormal results.
  const auto word = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t twice = word + word;  // drops the sign
  const float magnitude = std::bit_cast<float>(word & 0x7fffffffu);
  const std::uint32_t exponent = twice & 0xff000000u;
  const std::uint32_t bias = detail::select(exponent < 0x71000000u, 0x71000000u, exponent);
  const float rounded =
      std::bit_cast<float>((bias >> 1) + 0x07800000u) + magnitude * 0x1p+112f * 0x1p-110f;
  const auto sum = std::bit_cast<std::uint32_t>(rounded);
  const std::uint32_t unsigned_bits = ((sum >> 13) & 0x7c00u) + (sum & 0x0fffu);
  bits = static_cast<std::uint16_t>(
      detail::select(twice > 0xff000000u, 0x7fffu, (word >> 31 << 15) | unsigned_bits));
}
template <std::same_as<double> T>
Half::Half(T value) : Half(detail::round_to_odd(value)) {}
inline Half::operator float() const {
  const std::uint32_t word = static_cast<std::uint32_t>(bits) << 16;
  const std::uint32_t twice = word + word;
  const float normal = std::bit_cast<float>((twice >> 4) + 0x70000000u) * 0x1p-112f;
  const float subnormal = std::bit_cast<float>((twice >> 17) | 0x3f000000u) - 0.5f;
  const std::uint32_t magnitude =
      detail::select(twice < 0x08000000u, std::bit_cast<std::uint32_t>(subnormal),
                     std::bit_cast<std::uint32_t>(normal));
  return std::bit_cast<float>((word & 0x80000000u) | magnitude);
}

inline BFloat16::BFloat16(float value) {
  const auto word = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (word + 0x7fffu + ((word >> 16) & 1)) >> 16;
  bits = static_cast<std::uint16_t>(value != value ? 0x7fffu : rounded);
}
template <std::same_as<double> T>
BFloat16::BFloat16(T value) : BFloat16(detail::round_to_odd(value)) {}
inline BFloat16::operator float() const {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

}  // namespace forebay
