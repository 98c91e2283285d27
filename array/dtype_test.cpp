#include <forebay/array/dtype.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include <forebay/array/dispatch.h>
#include <forebay/array/number.h>

#include "kit/kit.h"

namespace forebay {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// `value` rounded to `bits` of significand, ties to even, with exponents of at least `least` and
/// magnitudes below 2^most: exact in double, and independent of the bit tricks that are tested.
double rounded(double value, int bits, int least, int most) {
  if (value == 0 || !std::isfinite(value)) return value;
  int exponent = 0;
  std::frexp(value, &exponent);  // |value| = 0.1xxx * 2^exponent
  const int last = std::max(exponent, least + 1) - bits;
  const double result = std::ldexp(std::nearbyint(std::ldexp(value, -last)), last);
  return std::abs(result) >= std::ldexp(1.0, most) ? std::copysign(kInfinity, value) : result;
}
double rounded_to_half(double value) { return rounded(value, 11, -14, 16); }
double rounded_to_bfloat16(double value) { return rounded(value, 8, -126, 128); }

template <class T>
T from_bits(unsigned bits) {
  T value;
  value.bits = static_cast<std::uint16_t>(bits);
  return value;
}

template <class T>
double as_double(T value) {
  return static_cast<float>(value);
}

TEST(Dtype, SizesAndNames) {
  const std::size_t sizes[] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16};
  const char* names[] = {"bool", "u8",  "u16",  "u32", "u64", "i8",  "i16", "i32",
                         "i64",  "f16", "bf16", "f32", "f64", "c64", "c128"};
  const char* numpy[] = {"bool_",    "uint8",   "uint16",  "uint32",    "uint64",
                         "int8",     "int16",   "int32",   "int64",     "float16",
                         "bfloat16", "float32", "float64", "complex64", "complex128"};
  for (std::size_t i = 0; i < std::size(kAllDtypes); ++i) {
    const Dtype dtype = kAllDtypes[i];
    EXPECT_EQ(static_cast<std::size_t>(dtype), i);
    EXPECT_EQ(size_of(dtype), sizes[i]);
    EXPECT_EQ(name_of(dtype), names[i]);
    EXPECT_EQ(dtype_from_name(names[i]), dtype);
    EXPECT_EQ(dtype_from_name(numpy[i]), dtype);
  }
}

TEST(Dtype, UnknownName) {
  EXPECT_ERROR(dtype_from_name("float"), invalid,
               "dtype `float` is not known; use one of bool, u8, u16, u32, u64, i8, i16, i32, i64, "
               "f16, bf16, f32, f64, "
               "c64, c128, or NumPy's names for them.");
}

TEST(Dtype, Kinds) {
  for (const Dtype dtype : kAllDtypes) {
    const int kinds = is_complex(dtype) + is_float(dtype) + is_unsigned(dtype) + is_signed(dtype);
    EXPECT_EQ(kinds, dtype == Dtype::boolean ? 0 : 1) << name_of(dtype);
    EXPECT_EQ(is_integer(dtype), is_unsigned(dtype) || is_signed(dtype));
  }
  EXPECT_EQ(real_of(Dtype::c64), Dtype::f32);
  EXPECT_EQ(real_of(Dtype::c128), Dtype::f64);
  EXPECT_EQ(real_of(Dtype::i8), Dtype::i8);
  EXPECT_EQ(complex_of(Dtype::f16), Dtype::c64);
  EXPECT_EQ(complex_of(Dtype::f64), Dtype::c128);
}

TEST(Half, EveryValueAndBack) {
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const Half half = from_bits<Half>(bits);
    const unsigned exponent = bits >> 10 & 0x1f, fraction = bits & 0x3ff;
    const double sign = bits & 0x8000 ? -1 : 1;
    if (exponent == 0x1f && fraction != 0) {
      EXPECT_TRUE(std::isnan(as_double(half)));
      EXPECT_EQ(Half(static_cast<float>(half)).bits, 0x7fff);
      continue;
    }
    const double value = exponent == 0x1f ? sign * kInfinity
                         : exponent == 0
                             ? sign * std::ldexp(fraction, -24)
                             : sign * std::ldexp(1024 + fraction, static_cast<int>(exponent) - 25);
    ASSERT_EQ(as_double(half), value) << bits;
    ASSERT_EQ(std::signbit(as_double(half)), std::signbit(value)) << bits;
    ASSERT_EQ(Half(static_cast<float>(half)).bits, bits);
    ASSERT_EQ(Half(static_cast<double>(value)).bits, bits);
  }
}

TEST(BFloat16, EveryValueAndBack) {
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const BFloat16 value = from_bits<BFloat16>(bits);
    ASSERT_EQ(std::bit_cast<std::uint32_t>(static_cast<float>(value)), bits << 16);
    const bool nan = (bits & 0x7fff) > 0x7f80;
    ASSERT_EQ(BFloat16(static_cast<float>(value)).bits, nan ? 0x7fff : bits);
    ASSERT_EQ(BFloat16(as_double(value)).bits, nan ? 0x7fff : bits);
  }
}

/// Values between all neighbours: the middle, and the nearest float and double on each side of it.
template <class T, class Oracle>
void check_between_neighbours(unsigned last_finite, double above_last, const Oracle& oracle) {
  for (unsigned bits = 0; bits <= last_finite; ++bits) {
    const double low = as_double(from_bits<T>(bits));
    const double high = bits == last_finite ? above_last : as_double(from_bits<T>(bits + 1));
    const double middle = low / 2 + high / 2;
    for (const double sign : {1.0, -1.0}) {
      for (const double towards : {low, middle, high}) {
        const double near = sign * std::nextafter(middle, towards);
        ASSERT_EQ(as_double(T(near)), oracle(near)) << bits;
        const float single =
            std::nextafter(static_cast<float>(middle), static_cast<float>(towards));
        ASSERT_EQ(as_double(T(static_cast<float>(sign) * single)), oracle(sign * single)) << bits;
      }
    }
  }
}

TEST(Half, RoundsToNearestEven) { check_between_neighbours<Half>(0x7bff, 65536, rounded_to_half); }
TEST(BFloat16, RoundsToNearestEven) {
  // Above the largest value the middle, 2^128 - 2^119, is still a float; the value after it is not.
  check_between_neighbours<BFloat16>(0x7f7e, 0, rounded_to_bfloat16);
  EXPECT_EQ(BFloat16(std::bit_cast<float>(0x7f7f7fffu)).bits, 0x7f7f);
  EXPECT_EQ(BFloat16(std::bit_cast<float>(0x7f7f8000u)).bits, 0x7f80);
  EXPECT_EQ(BFloat16(std::numeric_limits<double>::max()).bits, 0x7f80);
}

TEST(Half, RandomFloatsAndDoubles) {
  std::mt19937_64 engine(1);
  for (int i = 0; i < 300'000; ++i) {
    const std::uint64_t word = engine();
    const float single = std::bit_cast<float>(static_cast<std::uint32_t>(word));
    if (!std::isnan(single)) {
      ASSERT_EQ(as_double(Half(single)), rounded_to_half(single)) << single;
      ASSERT_EQ(as_double(BFloat16(single)), rounded_to_bfloat16(single)) << single;
    }
    // Doubles around the range of half: random significand, exponent -30 .. 19.
    const double value =
        std::ldexp(static_cast<double>(word >> 11) * 0x1p-53, static_cast<int>(word % 50) - 30);
    ASSERT_EQ(as_double(Half(value)), rounded_to_half(value)) << value;
    ASSERT_EQ(as_double(BFloat16(-value)), rounded_to_bfloat16(-value)) << value;
  }
}

TEST(Half, SpecialValues) {
  EXPECT_EQ(Half(-0.0f).bits, 0x8000);
  EXPECT_EQ(Half(65519.996f).bits, 0x7bff);
  EXPECT_EQ(Half(65520.0f).bits, 0x7c00);
  EXPECT_EQ(Half(-std::numeric_limits<float>::infinity()).bits, 0xfc00);
  EXPECT_EQ(Half(0x1p-25f).bits, 0);  // half of the smallest subnormal: to even
  EXPECT_EQ(Half(0x1.000002p-25f).bits, 1);
  EXPECT_EQ(Half(0x1.0000000000001p-25).bits, 1);  // double: one rounding, not through float
  EXPECT_EQ(Half(-std::numeric_limits<double>::quiet_NaN()).bits, 0x7fff);
  EXPECT_EQ(Half(std::numeric_limits<double>::denorm_min()).bits, 0);
  EXPECT_EQ(BFloat16(std::bit_cast<float>(0x7f800001u)).bits,
            0x7fff);  // a NaN whose upper bits are infinity's
}

TEST(Dispatch, FindsTheType) {
  int size = 0;
  dispatch(RealTypes{}, Dtype::bf16, "clip", "x",
           [&]<class T>(Type<T>) { size = std::is_same_v<T, BFloat16>; });
  EXPECT_EQ(size, 1);
}

TEST(Dispatch, NamesWhatIsSupported) {
  const auto nothing = [](auto) {};
  EXPECT_ERROR(dispatch(RealTypes{}, Dtype::c64, "normalize", "x", nothing), unsupported,
               "normalize: `x` has dtype c64; supported: integers, f16, bf16, f32, f64.");
  EXPECT_ERROR(dispatch(Types<bool, std::uint8_t, float>{}, Dtype::i8, "fft", "other", nothing),
               unsupported, "fft: `other` has dtype i8; supported: bool, u8, f32.");
}

TEST(Number, KeepsIntegersExact) {
  EXPECT_EQ(Number(UINT64_MAX).kind(), Number::Kind::u64);
  EXPECT_EQ(Number(std::uint64_t{7}), Number(7));
  EXPECT_EQ(Number(std::uint64_t{7}).kind(), Number::Kind::i64);
  EXPECT_FALSE(Number(7) == Number(7.0));
  EXPECT_EQ(Number(UINT64_MAX).f64(), 0x1p64);
  EXPECT_EQ(Number(INT64_MIN).i64(), INT64_MIN);
}

TEST(Number, ToString) {
  EXPECT_EQ(to_string(Number(INT64_MIN)), "-9223372036854775808");
  EXPECT_EQ(to_string(Number(UINT64_MAX)), "18446744073709551615");
  EXPECT_EQ(to_string(Number(3.0)), "3.0");
  EXPECT_EQ(to_string(Number(-0.0)), "-0.0");
  EXPECT_EQ(to_string(Number(0.1)), "0.1");
  EXPECT_EQ(to_string(Number(1e300)), "1e+300");
  EXPECT_EQ(to_string(Number(0.1f)), "0.10000000149011612");
  EXPECT_EQ(to_string(Number(kInfinity)), "inf");
  EXPECT_EQ(to_string(Number(std::numeric_limits<double>::quiet_NaN())), "nan");
}

}  // namespace
}  // namespace forebay
