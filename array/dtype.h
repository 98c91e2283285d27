#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace forebay {

/// The element types of an array. Names are those of DESIGN's users: `u8` is NumPy's uint8, `c64` is
/// complex64 (two f32). The order is part of the plan's hash: append only.
enum class Dtype : std::uint8_t {
  boolean, u8, u16, u32, u64, i8, i16, i32, i64, f16, bf16, f32, f64, c64, c128,
};

inline constexpr Dtype kAllDtypes[] = {
    Dtype::boolean, Dtype::u8,  Dtype::u16,  Dtype::u32, Dtype::u64, Dtype::i8,  Dtype::i16, Dtype::i32,
    Dtype::i64,     Dtype::f16, Dtype::bf16, Dtype::f32, Dtype::f64, Dtype::c64, Dtype::c128};

/// Host storage of the 16-bit floats. Arithmetic happens in float; conversion rounds to nearest even.
struct Half {
  std::uint16_t bits = 0;
  Half() = default;
  explicit Half(float value);
  explicit operator float() const;
};
struct BFloat16 {
  std::uint16_t bits = 0;
  BFloat16() = default;
  explicit BFloat16(float value);
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
constexpr Dtype complex_of(Dtype d) { return d == Dtype::f64 || d == Dtype::c128 ? Dtype::c128 : Dtype::c64; }

/// C++ type -> Dtype, and back through dispatch.h.
template <class T>
inline constexpr Dtype dtype_of = [] {
  static_assert(sizeof(T) == 0, "no Dtype for this C++ type");
  return Dtype::u8;
}();
template <> inline constexpr Dtype dtype_of<bool> = Dtype::boolean;
template <> inline constexpr Dtype dtype_of<std::uint8_t> = Dtype::u8;
template <> inline constexpr Dtype dtype_of<std::uint16_t> = Dtype::u16;
template <> inline constexpr Dtype dtype_of<std::uint32_t> = Dtype::u32;
template <> inline constexpr Dtype dtype_of<std::uint64_t> = Dtype::u64;
template <> inline constexpr Dtype dtype_of<std::int8_t> = Dtype::i8;
template <> inline constexpr Dtype dtype_of<std::int16_t> = Dtype::i16;
template <> inline constexpr Dtype dtype_of<std::int32_t> = Dtype::i32;
template <> inline constexpr Dtype dtype_of<std::int64_t> = Dtype::i64;
template <> inline constexpr Dtype dtype_of<Half> = Dtype::f16;
template <> inline constexpr Dtype dtype_of<BFloat16> = Dtype::bf16;
template <> inline constexpr Dtype dtype_of<float> = Dtype::f32;
template <> inline constexpr Dtype dtype_of<double> = Dtype::f64;
template <> inline constexpr Dtype dtype_of<std::complex<float>> = Dtype::c64;
template <> inline constexpr Dtype dtype_of<std::complex<double>> = Dtype::c128;

}  // namespace forebay
