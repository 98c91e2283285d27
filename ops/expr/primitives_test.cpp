// Every primitive of the language against an oracle, on both devices.
#include "kit/kit.h"
#include "kit/oracle.h"

#include <forebay/ops/eager.h>
#include <forebay/ops/expr/execute.h>
#include <forebay/ops/expr/opcodes.h>
#include <forebay/ops/expr/run_test.h>

namespace forebay::expr {
namespace {

class PrimitivesTest : public kit::DeviceTest {};

/// All pairs of edge values.
template <class T>
std::pair<std::vector<T>, std::vector<T>> pairs() {
  std::pair<std::vector<T>, std::vector<T>> result;
  const auto values = kit::edge_values<T>();
  for (T a : values) {
    for (T b : values) {
      result.first.push_back(a);
      result.second.push_back(b);
    }
  }
  return result;
}

// ---- Oracles: the exact result of one primitive, as a long double or a 128-bit integer.

using Wide = __int128;

Wide floor_quotient(Wide a, Wide b) {
  const Wide quotient = a / b;
  return quotient - (a % b != 0 && (a < 0) != (b < 0));
}

template <class T>
T integer_oracle(Opcode opcode, T a, T b) {
  const Wide x = a, y = b;
  switch (opcode) {
    case Opcode::neg:
      return static_cast<T>(-x);
    case Opcode::abs:
      return static_cast<T>(x < 0 ? -x : x);
    case Opcode::sign:
      return static_cast<T>((x > 0) - (x < 0));
    case Opcode::add:
      return static_cast<T>(x + y);
    case Opcode::sub:
      return static_cast<T>(x - y);
    case Opcode::mul:
      return static_cast<T>(static_cast<unsigned __int128>(x) * static_cast<unsigned __int128>(y));
    case Opcode::div:
      return y == 0 ? T(0) : static_cast<T>(floor_quotient(x, y));
    case Opcode::pow: {
      if (y < 0) return static_cast<T>(x == 1 ? 1 : x == -1 ? (y % 2 == 0 ? 1 : -1) : 0);
      // By the exponent's decimal digits.
      std::uint64_t power = 1;
      const std::string digits = std::to_string(static_cast<std::uint64_t>(y));
      for (char digit : digits) {
        std::uint64_t tenth = 1;
        for (int i = 0; i < 10; ++i)
          tenth *= power;
        for (int i = 0; i < digit - '0'; ++i)
          tenth *= static_cast<std::uint64_t>(x);
        power = tenth;
      }
      return static_cast<T>(power);
    }
    case Opcode::minimum:
      return static_cast<T>(std::min(x, y));
    case Opcode::maximum:
      return static_cast<T>(std::max(x, y));
    default:
      ADD_FAILURE() << info(opcode).name;
      return 0;
  }
}

struct Truth {
  long double value;
  int ulps;  ///< how far a result may be from it; 0: it must be the value, rounded once
};

Truth float_oracle(Opcode opcode, long double x, long double y) {
  const bool nan = std::isnan(x) || std::isnan(y);
  switch (opcode) {
    case Opcode::neg:
      return {-x, 0};
    case Opcode::abs:
      return {std::abs(x), 0};
    case Opcode::sqrt:
      return {std::sqrt(x), 0};
    case Opcode::exp:
      return {std::exp(x), 2};
    case Opcode::expm1:
      return {std::expm1(x), 2};
    case Opcode::log:
      return {std::log(x), 2};
    case Opcode::log1p:
      return {std::log1p(x), 2};
    case Opcode::log2:
      return {std::log2(x), 2};
    case Opcode::log10:
      return {std::log10(x), 2};
    case Opcode::sin:
      return {std::sin(x), 2};
    case Opcode::cos:
      return {std::cos(x), 2};
    case Opcode::tanh:
      return {std::tanh(x), 2};
    case Opcode::floor:
      return {std::floor(x), 0};
    case Opcode::ceil:
      return {std::ceil(x), 0};
    case Opcode::round_even:
      return {std::nearbyint(x), 0};
    case Opcode::sign:
      return {std::isnan(x) ? x : (x > 0) - (x < 0), 0};
    case Opcode::add:
      return {x + y, 0};
    case Opcode::sub:
      return {x - y, 0};
    case Opcode::mul:
      return {x * y, 0};
    case Opcode::div:
      return {x / y, 0};
    // glibc's powl overflows inside for such exponents.
    case Opcode::pow:
      return {std::abs(y) < 0x1p60L ? std::pow(x, y)
                                    : std::pow(static_cast<double>(x), static_cast<double>(y)),
              2};
    case Opcode::minimum:
      return {nan ? NAN : x < y ? x : y, 0};
    case Opcode::maximum:
      return {nan ? NAN : x > y ? x : y, 0};
    default:
      ADD_FAILURE() << info(opcode).name;
      return {};
  }
}

/// + - * / sqrt of doubles in doubles: a long double has too few bits to be rounded again.
double double_oracle(Opcode opcode, double x, double y, double otherwise) {
  switch (opcode) {
    case Opcode::sqrt:
      return std::sqrt(x);
    case Opcode::add:
      return x + y;
    case Opcode::sub:
      return x - y;
    case Opcode::mul:
      return x * y;
    case Opcode::div:
      return x / y;
    default:
      return otherwise;
  }
}

bool predicate_oracle(Opcode opcode, long double x, long double y) {
  switch (opcode) {
    case Opcode::lt:
      return x < y;
    case Opcode::le:
      return x <= y;
    case Opcode::eq:
      return x == y;
    case Opcode::ne:
      return x != y;
    case Opcode::is_nan:
      return std::isnan(x);
    case Opcode::logical_and:
      return x != 0 && y != 0;
    case Opcode::logical_or:
      return x != 0 || y != 0;
    case Opcode::logical_not:
      return x == 0;
    case Opcode::minimum:
      return x != 0 && y != 0;  // of bools
    case Opcode::maximum:
      return x != 0 || y != 0;
    default:
      ADD_FAILURE() << info(opcode).name;
      return false;
  }
}

template <class T>
void check_primitive(Opcode opcode, const Context& context) {
  const std::string what =
      std::string(info(opcode).name) + " of " + std::string(name_of(dtype_of<T>));
  const auto [a, b] = pairs<T>();
  const Array x = kit::array_of(a), y = kit::array_of(b);
  const Array got =
      run(info(opcode).operands == 1 ? unary(opcode, leaf_like(0, x))
                                     : binary(opcode, leaf_like(0, x), leaf_like(1, y)),
          {x, y}, context);
  const Dtype dtype = result_dtype(opcode, dtype_of<T>);
  ASSERT_EQ(got.dtype(), dtype) << what;
  if (dtype == Dtype::boolean) {
    std::vector<bool> want;
    for (std::size_t i = 0; i < a.size(); ++i)
      want.push_back(predicate_oracle(opcode, kit::exact(a[i]), kit::exact(b[i])));
    EXPECT_TRUE(kit::same_bits(got, kit::array_of(want))) << what;
  } else if constexpr (std::is_same_v<T, bool>) {
    ADD_FAILURE() << what;
  } else if constexpr (std::is_integral_v<T>) {
    std::vector<T> want;
    for (std::size_t i = 0; i < a.size(); ++i)
      want.push_back(integer_oracle(opcode, a[i], b[i]));
    EXPECT_TRUE(kit::same_bits(got, kit::array_of(want))) << what;
  } else {
    for (std::size_t i = 0; i < a.size(); ++i) {
      Truth truth = float_oracle(opcode, kit::exact(a[i]), kit::exact(b[i]));
      if constexpr (std::is_same_v<T, double>)
        truth.value = double_oracle(opcode, a[i], b[i], truth.value);
      const T want = kit::round_to<T>(truth.value);
      const long double value = kit::exact(got.as<T>()[i]);
      const bool same =
          truth.ulps == 0 || !std::isfinite(truth.value) || std::isinf(kit::exact(want))
              ? static_cast<bool>(
                    kit::same_bits(kit::array_of<T>({got.as<T>()[i]}), kit::array_of<T>({want})))
              : std::abs(value - truth.value) <=
                    truth.ulps * kit::ulp(kit::format_of<T>(), truth.value);
      ASSERT_TRUE(same) << what << " (" << static_cast<double>(kit::exact(a[i])) << ", "
                        << static_cast<double>(kit::exact(b[i])) << ") is "
                        << static_cast<double>(value) << ", not "
                        << static_cast<double>(truth.value);
    }
  }
}

DEVICE_TEST(PrimitivesTest, ComputesEveryPrimitiveOfReals) {
  const Context context = kit::context(device());
  for (Opcode opcode : computing_opcodes()) {
    for (Dtype dtype : kAllDtypes) {
      if (is_complex(dtype) || !info(opcode).supported.has(dtype)) continue;
      dispatch(kit::RealsAndBool{}, dtype, "test", "x",
               [&]<class T>(Type<T>) { check_primitive<T>(opcode, context); });
    }
  }
}

template <class R>
void check_complex(const Context& context) {
  using C = std::complex<R>;
  using Z = std::complex<long double>;
  const std::vector<R> parts = {0, 1, -1, R(0.1), R(-3.3), R(1e-3), 1000, 7};
  std::vector<C> a, b;
  for (R re : parts) {
    for (R im : parts) {
      for (R other : parts) {
        a.emplace_back(re, im);
        b.emplace_back(other, re + 2);
      }
    }
  }
  const Array x = Array::from<C>({static_cast<std::int64_t>(a.size())}, a),
              y = Array::from<C>(x.shape(), b);
  const Expr first = leaf_like(0, x), second = leaf_like(1, y);
  const double unit = 2 * kit::epsilon(dtype_of<R>);
  const auto check = [&](const Expr& expression, double ulps,
                         const std::function<Z(Z, Z)>& oracle) {
    std::vector<std::complex<double>> want;
    for (std::size_t i = 0; i < a.size(); ++i)
      want.emplace_back(oracle(a[i], b[i]));
    EXPECT_TRUE(kit::near(run(expression, {x, y}, context), want, ulps * unit))
        << info(expression.node()->opcode).name;
  };
  check(first + second, 1, [](Z p, Z q) { return p + q; });
  check(first - second, 1, [](Z p, Z q) { return p - q; });
  check(first * second, 3, [](Z p, Z q) { return p * q; });
  check(first / second, 5, [](Z p, Z q) { return p / q; });
  check(unary(Opcode::neg, first), 0, [](Z p, Z) { return -p; });
  check(unary(Opcode::conj, first), 0, [](Z p, Z) { return std::conj(p); });
  check(unary(Opcode::real, first), 0, [](Z p, Z) { return p.real(); });
  check(unary(Opcode::imag, first), 0, [](Z p, Z) { return p.imag(); });
  check(unary(Opcode::norm, first), 2, [](Z p, Z) { return std::norm(p); });
  check(unary(Opcode::abs, first), 2, [](Z p, Z) { return std::abs(p); });
  check(binary(Opcode::eq, first, second), 0, [](Z p, Z q) { return p == q; });
  check(binary(Opcode::ne, first, second), 0, [](Z p, Z q) { return p != q; });
  check(unary(Opcode::is_nan, first), 0, [](Z, Z) { return 0; });
  check(select(binary(Opcode::eq, first, second), first, second), 0, [](Z, Z q) { return q; });
}

DEVICE_TEST(PrimitivesTest, ComputesEveryPrimitiveOfComplexNumbers) {
  const Context context = kit::context(device());
  check_complex<float>(context);
  check_complex<double>(context);
}

DEVICE_TEST(PrimitivesTest, DividesComplexNumbersWhoseSquaresOverflow) {
  const Context context = kit::context(device());
  const Array x = Array::from<std::complex<double>>(
      {2}, std::vector<std::complex<double>>{{1e300, 1e300}, {1, 1}});
  const Array y = Array::from<std::complex<double>>(
      {2}, std::vector<std::complex<double>>{{2e300, 1e299}, {0, 0}});
  const Array got = run(leaf_like(0, x) / leaf_like(1, y), {x, y}, context);
  const std::complex<long double> want =
      std::complex<long double>(1, 1) / std::complex<long double>(2, 0.1L);
  EXPECT_NEAR(kit::complex_value(got.view(), 0).real(), static_cast<double>(want.real()), 1e-15);
  EXPECT_NEAR(kit::complex_value(got.view(), 0).imag(), static_cast<double>(want.imag()), 1e-15);
  EXPECT_TRUE(std::isinf(kit::complex_value(got.view(), 1).real()));
}

DEVICE_TEST(PrimitivesTest, SelectsInEveryDtype) {
  const Context context = kit::context(device());
  const Array condition =
      kit::generate({1025}, Dtype::boolean, [](std::int64_t i) { return i % 3 == 0; });
  for (Dtype dtype : kAllDtypes) {
    const Array x = kit::random({1025}, dtype, 1, 0, 2), y = kit::random({1025}, dtype, 2, 3, 100);
    const Array got = run(select(leaf_like(0, condition), leaf_like(1, x), leaf_like(2, y)),
                          {condition, x, y}, context);
    for (std::int64_t i = 0; i < 1025; ++i) {
      ASSERT_EQ(kit::complex_value(got.view(), i),
                kit::complex_value((i % 3 == 0 ? x : y).view(), i))
          << name_of(dtype);
    }
  }
}

}  // namespace
}  // namespace forebay::expr
