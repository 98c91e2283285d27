// What kernels compute in short ways (expr.cu) against the CPU's executor and against themselves.
#include "kit/kit.h"
#include "kit/oracle.h"

#include <bit>
#include <cmath>
#include <random>

#include <forebay/ops/expr/run_test.h>

namespace forebay::expr {
namespace {

Expr number(double value) { return Expr::constant(value, Dtype::f32); }

/// `count` f32 with bits first, first + step, ..
Array floats(std::uint32_t first, std::uint32_t step, std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = std::bit_cast<float>(first + step * static_cast<std::uint32_t>(i));
  return kit::array_of(values);
}

TEST(ShortWaysCuda, GiveTheBitsOfDivision) {
  SKIP_WITHOUT(Device::cuda());
  const Context cuda = kit::context(Device::cuda()), cpu = kit::context(Device::cpu());
  const Array all = floats(0, 5003, 858'000);  // of every size and sign, and what is no number
  const Array near = floats(0x3f800000, 7, 1 << 20);
  for (float d : {3.0F, 0.31F, 57.12F, 255.0F, 0x1.fffffep0F, 0x1.000002p0F, 0x1.fffffcp-3F,
                  0x1.8p-20F, 0x1.8p19F, 1e-9F, 1e30F, 1e-40F, 0.0F, -3.0F, INFINITY, NAN}) {
    const Array divisor = kit::array_of(std::vector<float>{d});
    for (const Array& x : {all, near}) {
      const Expr leaf = leaf_like(0, x);
      for (const Expr& quotient :
           {leaf / number(d), leaf / broadcast_to(leaf_like(1, divisor), x.shape())}) {
        EXPECT_TRUE(
            kit::same_bits(run(quotient, {x, divisor}, cuda), run(quotient, {x, divisor}, cpu)))
            << d;
      }
    }
  }
}

TEST(ShortWaysCuda, GiveTheBitsOfDivisionOfIntegersLessANumber) {
  SKIP_WITHOUT(Device::cuda());
  const Context cuda = kit::context(Device::cuda()), cpu = kit::context(Device::cpu());
  const Array bytes = kit::generate({3, 700, 3}, Dtype::u8, [](std::int64_t i) { return i % 251; });
  const std::vector<float> edges{0.0F,   -0.0F, 123.675F, 116.28F, 1.0F,
                                 255.0F, 0.5F,  1e-18F,   1e-30F,  1e-42F,
                                 1e30F,  3e38F, INFINITY, NAN,     -103.53F};
  for (float shift : edges) {
    for (float d : {57.375F, 0.0F, 1e-30F, 1e30F, -2.5F, INFINITY}) {
      const Array shifts = kit::array_of(std::vector<float>{shift, 128.0F, shift + 1});
      const Array divisors = kit::array_of(std::vector<float>{d, 57.12F, 58.395F});
      const Dims over{3, 700, 3};
      const Expr x = cast(leaf_like(0, bytes), Dtype::f32);
      const Expr by_tables = (x - broadcast_to(leaf_like(1, shifts), over)) /
                             broadcast_to(leaf_like(2, divisors), over);
      for (const Expr& quotient :
           {by_tables, permute(by_tables, {0, 2, 1}), (x - number(shift)) / number(d)}) {
        const std::vector<Array> hosts{bytes, shifts, divisors};
        EXPECT_TRUE(kit::same_bits(run(quotient, hosts, cuda), run(quotient, hosts, cpu)))
            << shift << " " << d;
      }
    }
  }
}

TEST(ShortWaysCuda, GiveTheBitsOfSquareRoots) {
  SKIP_WITHOUT(Device::cuda());
  const Context cuda = kit::context(Device::cuda()), cpu = kit::context(Device::cpu());
  // Every number from 1 to 4, and some of every size and sign.
  for (const Array& x : {floats(0x3f800000, 1, 1 << 24), floats(0, 1021, 1 << 22)}) {
    const Expr root = unary(Opcode::sqrt, leaf_like(0, x));
    EXPECT_TRUE(kit::same_bits(run(root, {x}, cuda), run(root, {x}, cpu)));
  }
}

TEST(ShortWaysCuda, GiveLogarithmsAndExponentialsWithinTwoUnitsInTheLastPlace) {
  SKIP_WITHOUT(Device::cuda());
  const Context cuda = kit::context(Device::cuda());
  for (const Array& x : {floats(0, 1021, 1 << 22), floats(0x3f000000, 3, 1 << 23),
                         floats(0x42ac0000, 1, 1 << 18), floats(0xc2ac0000, 1, 1 << 19)}) {
    const Array log = run(unary(Opcode::log, leaf_like(0, x)), {x}, cuda);
    const Array log1p = run(unary(Opcode::log1p, leaf_like(0, x)), {x}, cuda);
    const Array exp = run(unary(Opcode::exp, leaf_like(0, x)), {x}, cuda);
    const auto check = [](const char* name, float operand, float got, double want) {
      const auto rounded = static_cast<float>(want);
      if (!std::isfinite(rounded)) {
        ASSERT_TRUE(std::isnan(want) ? std::isnan(got) : got == rounded)
            << name << " " << operand << " is " << got;
        return;
      }
      ASSERT_LE(std::abs(static_cast<long double>(got) - want),
                2 * kit::ulp(kit::format_of<float>(), want))
          << name << " " << operand << " is " << got << ", not " << want;
      ASSERT_EQ(std::signbit(got), std::signbit(want)) << name << " " << operand;
    };
    for (std::int64_t i = 0; i < x.count(); ++i) {
      const float operand = x.as<float>()[i];
      check("log", operand, log.as<float>()[i], std::log(static_cast<double>(operand)));
      check("exp", operand, exp.as<float>()[i], std::exp(static_cast<double>(operand)));
      check("log1p", operand, log1p.as<float>()[i], std::log1p(static_cast<double>(operand)));
    }
  }
}

TEST(ShortWaysCuda, GiveTheSameBitsInPacksAndOneByOne) {
  SKIP_WITHOUT(Device::cuda());
  const Context cuda = kit::context(Device::cuda());
  const Array x = kit::random({1021, 64}, Dtype::f32, 3, -1.5, 9);
  for (Opcode opcode : {Opcode::sqrt, Opcode::log, Opcode::log1p, Opcode::exp}) {
    const Array want = run(unary(opcode, leaf_like(0, x)), {x}, cuda);
    for (kit::Layout layout : kit::layouts()) {
      const Array laid = kit::with_layout(x, layout);
      EXPECT_TRUE(kit::same_bits(run(unary(opcode, leaf_like(0, laid)), {laid}, cuda), want));
    }
  }
}

}  // namespace
}  // namespace forebay::expr
