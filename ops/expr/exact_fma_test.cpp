// Where a fused multiply-add has the bits of a product and a sum.
#include <forebay/ops/expr/exact_fma.h>

#include "kit/kit.h"
#include "kit/oracle.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include <forebay/ops/expr/run_test.h>

namespace forebay::expr {
namespace {

Expr number(double value) { return Expr::constant(value, Dtype::f32); }

ExactFma fma_of(const Expr& expression) {
  const Program program = compile({&expression, 1});
  return exact_fma(program, program.outputs[0]);
}

/// Floats of every size and sign, infinities and NaN, and all about `middle`.
Array floats_about(float middle) {
  std::vector<float> values;
  for (std::uint32_t i = 0; i < 430'000; ++i)
    values.push_back(std::bit_cast<float>(i * 9973));
  const auto bits = std::bit_cast<std::uint32_t>(middle);
  for (std::uint32_t i = 0; i < 2000; ++i)
    values.push_back(std::bit_cast<float>(bits - 1000 + i));
  return kit::array_of(values);
}

TEST(ExactFma, HasTheBitsOfTheTwoOperations) {
  const Context cpu = kit::context(Device::cpu());
  for (const double factor : {0.5, 2.0, -0.25, -8.0, 0x1p20, 0x1p-20}) {
    for (const double shift : {1.0, -0.5, 123.675, -0x1p60, 0x1p-60}) {
      const Array x = floats_about(static_cast<float>(-shift / factor));
      const Array y = floats_about(static_cast<float>(-shift));
      const Expr of_x = leaf_like(0, x), of_y = leaf_like(0, y);
      const std::pair<Expr, const Array*> expressions[] = {
          {of_x * number(factor) + number(shift), &x},
          {number(factor) * of_x - number(shift), &x},
          {number(shift) - of_x / number(factor), &x},
          {(of_y + number(shift)) * number(factor), &y},
          {(number(shift) - of_y) / number(factor), &y}};
      int fused = 0;
      for (const auto& [expression, operand] : expressions) {
        const ExactFma fma = fma_of(expression);
        if (fma.operand < 0) continue;
        ++fused;
        const Array want = run(expression, {*operand}, cpu);
        const Array got = kit::generate(operand->shape(), Dtype::f32, [&](std::int64_t i) {
          return std::fma(operand->as<float>()[i], static_cast<float>(fma.factor),
                          static_cast<float>(fma.shift));
        });
        EXPECT_TRUE(kit::same_bits(got, want)) << factor << " " << shift;
      }
      EXPECT_EQ(fused, factor > 0 ? 5 : 3);  // a negative factor on a sum turns the sign of zero
    }
  }
}

TEST(ExactFma, IsForPowersOfTwoAndMiddlingNumbersInF32) {
  const Expr x = Expr::leaf(0, Dtype::f32, {8}), y = Expr::leaf(1, Dtype::f32, {8});
  for (const Expr& expression :
       {x * number(3) + number(1), x * number(0x1p21) + number(1), x * number(2) + number(0),
        x * number(2) + number(1e-30), x * number(2) + number(INFINITY), x * y + number(1),
        x * number(2) + y, number(2) / x + number(1), x + number(1)})
    EXPECT_EQ(fma_of(expression).operand, -1);
  const Expr half = Expr::leaf(0, Dtype::f16, {8});
  EXPECT_EQ(fma_of(half * Expr::constant(2, Dtype::f16) + Expr::constant(1, Dtype::f16)).operand,
            -1);
}

TEST(ExactFma, LeavesOutWhatNothingElseReads) {
  const Expr x = Expr::leaf(0, Dtype::f32, {8});
  const Expr product = x * number(2);
  const auto count = [](const std::vector<Expr>& outputs) {
    const std::vector<bool> needed = needed_with_fma(compile(outputs));
    return std::count(needed.begin(), needed.end(), true);
  };
  EXPECT_EQ(count({product + number(1)}), 2);           // x and the sum
  EXPECT_EQ(count({product + number(1), product}), 4);  // x, 2, the product and the sum
}

}  // namespace
}  // namespace forebay::expr
