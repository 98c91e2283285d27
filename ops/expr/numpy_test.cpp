// The dtypes and values of expressions as NumPy 2 has them, and where ours differ.
#include "kit/kit.h"

#include <cmath>
#include <sstream>

#include <forebay/array/require.h>
#include <forebay/ops/eager.h>
#include <forebay/ops/expr/numpy.h>

namespace forebay::expr {
namespace {

using numpy::Operand;

TEST(Promote, IsNumPys) {
  const std::vector<Dtype> columns = {
      Dtype::boolean, Dtype::u8,  Dtype::u16, Dtype::u32, Dtype::u64, Dtype::i8,  Dtype::i16,
      Dtype::i32,     Dtype::i64, Dtype::f16, Dtype::f32, Dtype::f64, Dtype::c64, Dtype::c128};
  // numpy.promote_types, the upper triangle.
  const std::vector<std::string> rows = {"bool u8 u16 u32 u64 i8 i16 i32 i64 f16 f32 f64 c64 c128",
                                         "u8 u16 u32 u64 i16 i16 i32 i64 f16 f32 f64 c64 c128",
                                         "u16 u32 u64 i32 i32 i32 i64 f32 f32 f64 c64 c128",
                                         "u32 u64 i64 i64 i64 i64 f64 f64 f64 c128 c128",
                                         "u64 f64 f64 f64 f64 f64 f64 f64 c128 c128",
                                         "i8 i16 i32 i64 f16 f32 f64 c64 c128",
                                         "i16 i32 i64 f32 f32 f64 c64 c128",
                                         "i32 i64 f64 f64 f64 c128 c128",
                                         "i64 f64 f64 f64 c128 c128",
                                         "f16 f32 f64 c64 c128",
                                         "f32 f64 c64 c128",
                                         "f64 c128 c128",
                                         "c64 c128",
                                         "c128"};
  for (std::size_t i = 0; i < columns.size(); ++i) {
    std::istringstream row(rows[i]);
    for (std::size_t k = i; k < columns.size(); ++k) {
      std::string want;
      row >> want;
      EXPECT_EQ(name_of(promote(columns[i], columns[k])), want)
          << name_of(columns[i]) << " with " << name_of(columns[k]);
      EXPECT_EQ(promote(columns[k], columns[i]), promote(columns[i], columns[k]));
    }
  }
  EXPECT_EQ(promote(Dtype::bf16, Dtype::f16), Dtype::f32);
  EXPECT_EQ(promote(Dtype::bf16, Dtype::u8), Dtype::bf16);
  EXPECT_EQ(promote(Dtype::i16, Dtype::bf16), Dtype::f32);
  EXPECT_EQ(promote(Dtype::bf16, Dtype::i32), Dtype::f64);
  EXPECT_EQ(promote(Dtype::bf16, Dtype::f32), Dtype::f32);
  EXPECT_EQ(promote(Dtype::bf16, Dtype::boolean), Dtype::bf16);
  EXPECT_EQ(promote(Dtype::bf16, Dtype::c64), Dtype::c64);
}

Operand x(Dtype dtype) { return Expr::leaf(0, dtype, {3}); }
Dtype type(const Operand& a) { return a.expr().dtype(); }

TEST(NumPyExpressions, GiveANumberTheDtypeOfItsArray) {
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16, Dtype::f32, Dtype::f64, Dtype::c64}) {
    EXPECT_EQ(type(numpy::binary(Opcode::mul, x(dtype), Number(0.1))), dtype);
    EXPECT_EQ(type(numpy::binary(Opcode::add, Number(2), x(dtype))), dtype);
  }
  EXPECT_EQ(type(numpy::binary(Opcode::add, x(Dtype::u8), Number(255))), Dtype::u8);
  EXPECT_EQ(type(numpy::binary(Opcode::mul, x(Dtype::boolean), Number(2))), Dtype::i64);
  // Ours: f32, where NumPy has float64.
  EXPECT_EQ(type(numpy::binary(Opcode::mul, x(Dtype::i64), Number(0.5))), Dtype::f32);
  EXPECT_EQ(type(numpy::binary(Opcode::div, x(Dtype::u8), Number(255))), Dtype::f32);
  EXPECT_EQ(type(numpy::binary(Opcode::div, x(Dtype::i32), x(Dtype::u8))), Dtype::f32);
  EXPECT_EQ(type(numpy::binary(Opcode::div, x(Dtype::boolean), x(Dtype::boolean))), Dtype::f32);
  EXPECT_EQ(type(numpy::unary(Opcode::sqrt, x(Dtype::i64))), Dtype::f32);
  EXPECT_EQ(type(numpy::where(x(Dtype::boolean), Number(1), Number(0.5))), Dtype::f32);
  EXPECT_EQ(type(numpy::where(x(Dtype::boolean), Number(1), Number(0))), Dtype::i64);
  EXPECT_EQ(type(numpy::where(x(Dtype::f32), x(Dtype::f16), Number(0))), Dtype::f16);
  // NumPy's.
  EXPECT_EQ(type(numpy::binary(Opcode::mul, x(Dtype::i32), x(Dtype::f32))), Dtype::f64);
  EXPECT_EQ(type(numpy::binary(Opcode::lt, x(Dtype::i32), Number(0.5))), Dtype::boolean);
  EXPECT_EQ(type(numpy::unary(Opcode::floor, x(Dtype::i32))), Dtype::i32);
  EXPECT_EQ(type(numpy::unary(Opcode::abs, x(Dtype::c128))), Dtype::f64);
}

TEST(NumPyExpressions, ComputeNumbersAmongThemselves) {
  const auto number = [](const Operand& a) { return a.number(); };
  EXPECT_EQ(number(numpy::binary(Opcode::mul, Number(3), Number(4))), Number(12));
  EXPECT_EQ(number(numpy::binary(Opcode::div, Number(3), Number(4))), Number(0.75));
  EXPECT_EQ(number(numpy::binary(Opcode::pow, Number(2), Number(40))), Number(INT64_C(1) << 40));
  EXPECT_EQ(number(numpy::binary(Opcode::pow, Number(-1), Number(INT64_C(1) << 50))), Number(1));
  EXPECT_EQ(number(numpy::binary(Opcode::pow, Number(2), Number(-1))), Number(0.5));
  EXPECT_EQ(number(numpy::binary(Opcode::pow, Number(10), Number(30))), Number(1e30));
  EXPECT_EQ(number(numpy::binary(Opcode::add, Number(INT64_MAX), Number(1))), Number(0x1p63));
  EXPECT_EQ(number(numpy::binary(Opcode::maximum, Number(1), Number(2.5))), Number(2.5));
  EXPECT_TRUE(
      std::isnan(number(numpy::binary(Opcode::minimum, Number(1), Number(std::nan("")))).f64()));
  EXPECT_EQ(number(numpy::unary(Opcode::neg, Number(INT64_MAX))), Number(-INT64_MAX));
  EXPECT_EQ(number(numpy::unary(Opcode::neg, Number(UINT64_C(1) << 63))), Number(INT64_MIN));
  EXPECT_EQ(number(numpy::unary(Opcode::sqrt, Number(2))), Number(std::sqrt(2.0)));
  EXPECT_EQ(number(numpy::unary(Opcode::round_even, Number(2.5))), Number(2.0));
  EXPECT_EQ(number(numpy::unary(Opcode::abs, Number(-7))), Number(7));
  EXPECT_EQ(number(numpy::unary(Opcode::norm, Number(-3))), Number(9));
  EXPECT_EQ(number(numpy::unary(Opcode::sign, Number(-3))), Number(-1));
}

/// The values of an expression whose source 0 is `source`.
std::vector<double> values_of(const Operand& a, const Array& source) {
  const Context context = kit::context(Device::cpu());
  const Array result = eval(a.expr(), {source}, context);
  context.stream.synchronize();
  return kit::values(result);
}

TEST(NumPyExpressions, CompareIntegersWithAnyNumberExactly) {
  const Array bytes = Array::from<std::uint8_t>({3}, std::vector<std::uint8_t>{0, 7, 255});
  const Operand b = x(Dtype::u8);
  const auto compared = [&](Opcode opcode, const Operand& l, const Operand& r) {
    return values_of(numpy::binary(opcode, l, r), bytes);
  };
  using Values = std::vector<double>;
  EXPECT_EQ(compared(Opcode::lt, b, Number(300)), (Values{1, 1, 1}));
  EXPECT_EQ(compared(Opcode::lt, Number(300), b), (Values{0, 0, 0}));
  EXPECT_EQ(compared(Opcode::le, b, Number(-1)), (Values{0, 0, 0}));
  EXPECT_EQ(compared(Opcode::le, Number(-1), b), (Values{1, 1, 1}));
  EXPECT_EQ(compared(Opcode::eq, b, Number(256)), (Values{0, 0, 0}));
  EXPECT_EQ(compared(Opcode::ne, Number(-1), b), (Values{1, 1, 1}));
  EXPECT_EQ(compared(Opcode::lt, Number(6.9999999999), b), (Values{0, 1, 1}));
  EXPECT_EQ(compared(Opcode::minimum, b, Number(300)), (Values{0, 7, 255}));
  EXPECT_EQ(values_of(numpy::clip(b, Number(-5), Number(1000)), bytes), (Values{0, 7, 255}));
  EXPECT_EQ(values_of(numpy::clip(b, Number(0.5), Number(9)), bytes), (Values{0.5, 7, 9}));
}

TEST(NumPyExpressions, TakeRealsWhereTheyAreSpecialComplexNumbers) {
  const Array a = Array::from<float>({3}, std::vector<float>{-2, 0.5, 3});
  const Operand r = x(Dtype::f32);
  using Values = std::vector<double>;
  EXPECT_EQ(values_of(numpy::unary(Opcode::norm, r), a), (Values{4, 0.25, 9}));
  EXPECT_EQ(values_of(numpy::unary(Opcode::imag, r), a), (Values{0, 0, 0}));
  EXPECT_EQ(values_of(numpy::unary(Opcode::conj, r), a), (Values{-2, 0.5, 3}));
  EXPECT_EQ(values_of(numpy::binary(Opcode::pow, r, Number(2)), a), (Values{4, 0.25, 9}));
  const Operand positive = numpy::binary(Opcode::lt, Number(0), r);
  EXPECT_EQ(values_of(numpy::binary(Opcode::add, positive, positive), a), (Values{0, 1, 1}));
  EXPECT_EQ(values_of(numpy::unary(Opcode::logical_not, positive), a), (Values{1, 0, 0}));
  EXPECT_EQ(values_of(numpy::where(r, Number(1), Number(2)), a), (Values{1, 1, 1}));
}

TEST(NumPyExpressionErrors, NameTheOperands) {
  EXPECT_ERROR(
      numpy::binary(Opcode::sub, Expr::leaf(0, Dtype::f32, {3, 4}), Expr::leaf(1, Dtype::u8, {5})),
      invalid,
      "`-` of f32 (3, 4) and u8 (5,): shapes (3, 4) and (5,) do not broadcast: axis -1 is "
      "4 and 5; extents must be equal or 1.");
  EXPECT_ERROR(
      numpy::binary(Opcode::add, x(Dtype::u8), Number(300)), invalid,
      "`+`: 300 does not fit u8, the dtype of what it meets; cast that to a wider type, or "
      "write 300.0.");
  EXPECT_ERROR(
      numpy::binary(Opcode::pow, x(Dtype::i32), Number(-1)), invalid,
      "`**` of i32 (3,) and -1: integers to a negative power are not whole; cast them to a "
      "float, or write -1.0.");
  EXPECT_ERROR(
      numpy::binary(Opcode::logical_and, x(Dtype::f32), x(Dtype::boolean)), unsupported,
      "`&` of f32 (3,) and bool (3,): it takes bools. Put comparisons in parentheses: (x > "
      "0) & (x < 1).");
  EXPECT_ERROR(numpy::binary(Opcode::lt, x(Dtype::c64), Number(1)), unsupported,
               "`<` of c64 (3,) and 1: it takes bool, integers, f16, bf16, f32, f64.");
  EXPECT_ERROR(numpy::unary(Opcode::sqrt, x(Dtype::c64)), unsupported,
               "`sqrt` of c64 (3,): it takes f16, bf16, f32, f64.");
  EXPECT_ERROR(numpy::unary(Opcode::neg, x(Dtype::boolean)), unsupported,
               "`-` of bool (3,): it takes integers, f16, bf16, f32, f64, c64, c128.");
  EXPECT_ERROR(numpy::where(Expr::leaf(0, Dtype::boolean, {2}), x(Dtype::f32), Number(1)), invalid,
               "`where` of bool (2,) and f32 (3,): shapes (2,) and (3,) do not broadcast: axis -1 "
               "is 2 and 3; extents must be equal or 1.");
}

}  // namespace
}  // namespace forebay::expr
