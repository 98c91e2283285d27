#include "kit/kit.h"

#include <cmath>
#include <complex>
#include <numbers>

#include <forebay/array/require.h>
#include <forebay/ops/expr_op/expr_op.h>
#include <forebay/ops/expr_op/formula.h>
#include <forebay/pipeline/config/config.h>

namespace forebay {
namespace {

class ExprOpTest : public kit::DeviceTest {};

using Fields = std::vector<std::pair<std::string, Array>>;

Array run(std::string_view text, const Fields& fields, const Context& context) {
  Fields there;
  for (const auto& [name, array] : fields)
    there.emplace_back(name, kit::to_device(array, context));
  return kit::to_host(eval(text, there, context), context);
}

/// The value of an expression of numbers and of x = 2, y = 3 and z = 5 in f64.
double value(std::string_view text) {
  const Context context = kit::context(Device::cpu());
  const auto number = [](double v) { return Array::from<double>({}, std::vector<double>{v}); };
  return kit::values(run(std::string(text) + " + 0 * x",
                         {{"x", number(2)}, {"y", number(3)}, {"z", number(5)}}, context))[0];
}

TEST(Formula, HasPythonsPrecedence) {
  EXPECT_EQ(value("x + y * z"), 17);
  EXPECT_EQ(value("(x + y) * z"), 25);
  EXPECT_EQ(value("z - y - x"), 0);
  EXPECT_EQ(value("z / x / 5"), 0.5);
  EXPECT_EQ(value("-x ** 2"), -4);
  EXPECT_EQ(value("2 ** -1 * x"), 1);
  EXPECT_EQ(value("x ** y ** x"), 512);
  EXPECT_EQ(value("- - x - -y"), 5);
  EXPECT_EQ(value("+x"), 2);
  EXPECT_EQ(value("where(x < y, 1, 2)"), 1);
  EXPECT_EQ(value("where((x > y) | (y >= 3) & ~(z != 5), 1, 2)"), 1);
  EXPECT_EQ(value("where(x + 1 == y, 1, 2)"), 1);
  EXPECT_EQ(value("where(x <= y - 1, 1, 2)"), 1);
}

TEST(Formula, KnowsNumbersConstantsAndFunctions) {
  EXPECT_EQ(value("1e3 + .5 + 1. + 2.5E-1"), 1001.75);
  EXPECT_EQ(value("18446744073709551615 * 1.0"), 18446744073709551615.0);
  EXPECT_EQ(value("pi"), std::numbers::pi);
  EXPECT_EQ(value("e"), std::numbers::e);
  EXPECT_EQ(value("-inf"), -INFINITY);
  EXPECT_TRUE(std::isnan(value("nan")));
  EXPECT_EQ(value("clip(z, x, y)"), 3);
  EXPECT_EQ(value("maximum(minimum(z, x), 1)"), 2);
  EXPECT_EQ(value("f64(f16(x / 3))"), 0.66650390625);
  EXPECT_EQ(value("float64(u8(300 * x))"), 255);
  EXPECT_EQ(value("sqrt(abs(-z - 4)) + round(2.5) + floor(1.5) + ceil(x / y) + sign(-x)"), 6);
  EXPECT_EQ(value("where(isnan(x - inf + inf), 1, 0)"), 1);
}

TEST(Formula, NamesWhatItReadsInOrderOfFirstUse) {
  EXPECT_EQ(expr::Formula("log1p(abs(x) * gain) - x * _b2 + pi").names(),
            (std::vector<std::string>{"x", "gain", "_b2"}));
}

TEST(Formula, IsExplainedWithEveryFunction) {
  std::string text;
  struct Docs final : FieldVisitor {
    explicit Docs(std::string& to) : text(to) {}
    void on(const Field&, bool&) override {}
    void on(const Field&, std::int64_t&) override {}
    void on(const Field&, double&) override {}
    void on(const Field&, Number&) override {}
    void on(const Field&, Dtype&) override {}
    void on(const Field& field, std::string&) override { text = field.doc; }
    void on(const Field&, std::vector<std::int64_t>&) override {}
    void on(const Field&, Reals&) override {}
    void on(const Field&, ConstantArray&) override {}
    void on_choice(const Field&, int&, std::span<const std::string_view>) override {}
    bool visit_optional(const Field&, bool) override { return false; }
    std::string& text;
  } docs(text);
  ExprOp().fields(docs);
  for (const expr::numpy::Function& function : expr::numpy::functions())
    EXPECT_NE(text.find(std::string(" ") + std::string(function.name)), std::string::npos)
        << function.name;
}

DEVICE_TEST(ExprOpTest, ComputesOverFieldsOfEveryLayout) {
  const Context context = kit::context(device());
  const Array x = kit::random({7, 33, 5}, Dtype::f32, 1),
              gain = kit::random({33, 1}, Dtype::f32, 2);
  const Array z = kit::random({7, 33, 5}, Dtype::c64, 3),
              mask = kit::random({5}, Dtype::boolean, 4);
  const auto xs = kit::values(x), gains = kit::values(gain), masks = kit::values(mask);
  const auto zs = kit::complex_values(z);
  std::vector<double> chain, power;
  std::vector<std::complex<double>> product;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    const auto g = static_cast<float>(gains[i / 5 % 33]), v = static_cast<float>(xs[i]);
    chain.push_back(std::log1p(double{std::fabs(v) * std::fabs(g)}));
    power.push_back(masks[i % 5] != 0 ? std::norm(zs[i]) : -1);
    product.push_back(std::conj(zs[i]) * xs[i]);
  }
  for (const kit::Layout layout : kit::layouts()) {
    const Array strided = kit::with_layout(x, layout), spectrum = kit::with_layout(z, layout);
    EXPECT_TRUE(
        kit::near(run("log1p(abs(x) * abs(gain))", {{"x", strided}, {"gain", gain}}, context),
                  chain, 4 * kit::epsilon(Dtype::f32)));
    EXPECT_TRUE(
        kit::near(run("where(keep, norm(z), -1)", {{"keep", mask}, {"z", spectrum}}, context),
                  power, 4 * kit::epsilon(Dtype::f32)));
    EXPECT_TRUE(kit::near(run("conj(z) * x", {{"x", strided}, {"z", spectrum}}, context), product,
                          4 * kit::epsilon(Dtype::f32), 8 * kit::epsilon(Dtype::f32)));
  }
}

DEVICE_TEST(ExprOpTest, GivesTheBitsOfTheOpsOneByOne) {
  const Context context = kit::context(device());
  for (const Dtype dtype : {Dtype::u8, Dtype::f16, Dtype::bf16, Dtype::f32, Dtype::f64}) {
    const Array x = kit::random({3, 100}, dtype, 5);
    Array step = run("x - 0.13", {{"x", x}}, context);
    step = run("x / 0.31", {{"x", step}}, context);
    step = run("clip(x, -3, 3)", {{"x", step}}, context);
    step = run("exp(x)", {{"x", step}}, context);
    EXPECT_TRUE(
        kit::same_bits(run("exp(clip((x - 0.13) / 0.31, -3, 3))", {{"x", x}}, context), step))
        << name_of(dtype);
  }
}

DEVICE_TEST(ExprOpTest, TakesEmptyAndScalarFields) {
  const Context context = kit::context(device());
  EXPECT_EQ(run("x + 1", {{"x", kit::random({0, 4}, Dtype::f32, 1)}}, context).shape(),
            (Dims{0, 4}));
  const Array one = Array::from<float>({}, std::vector<float>{1});
  EXPECT_EQ(kit::values(run("x * y", {{"x", one}, {"y", one}}, context)), std::vector<double>{1});
}

std::string problem_of(std::string_view text) {
  return kit::caught([&] { expr::Formula{text}; }).text;
}

TEST(FormulaErrors, HaveTheColumn) {
  const std::pair<const char*, const char*> cases[] = {
      {"1 + 2 * log1(x)", "column 9: unknown function `log1`; did you mean `log1p`?"},
      {"frobnicate(x)",
       "column 1: unknown function `frobnicate`; there are abs, sqrt, exp, expm1, log1p, log, "
       "log2, "
       "log10, sin, cos, tanh, floor, ceil, round, sign, isnan, real, imag, conj, norm, minimum, "
       "maximum, clip, where, and the dtypes, such as f32(x)."},
      {"clip(x, 3)", "column 1: `clip` takes 3 arguments; it is given 2."},
      {"x + f32(x, 2)", "column 5: `f32` takes 1 argument; it is given 2."},
      {"abs()", "column 1: `abs` takes 1 argument; it is given 0."},
      {"x *", "column 4: expected a value, found the end."},
      {"x * * 2", "column 5: expected a value, found `*`."},
      {"", "column 1: expected a value, found the end."},
      {"x y", "column 3: expected an operator, found `y`."},
      {"2x", "column 2: expected an operator, found `x`."},
      {"x)", "column 2: expected an operator, found `)`."},
      {"2 * (x + 1", "column 5: `(` is not closed: at column 11 comes the end."},
      {"abs(x; 2)", "column 1: the arguments of `abs` are not closed: at column 6 comes `;`."},
      {"0 < x < 1", "column 7: comparisons do not chain; write (a < b) & (b < c)."},
      {"x and y",
       "column 3: expected an operator, found `and`. Write & between bools, in parentheses."},
      {"x = 1", "column 3: expected an operator, found `=`. Write == to compare."},
      {"!x", "column 1: expected a value, found `!`. Write ~ before a bool."},
      {"x ^ 2", "column 3: expected an operator, found `^`. Write ** for a power."},
      {"x // 2", "column 3: expected an operator, found `//`. Write floor(a / b)."},
      {"é + x", "column 1: expected a value, found `é`."},
      {"x + \"é\" + $", "column 5: expected a value, found `\"`."},
      {"x * 1.2.3", "column 5: expected a number, found `1.2.3`."},
      {"x * 1e999", "column 5: 1e999 is outside the range of f64."},
      {"x + 18446744073709551616",
       "column 5: 18446744073709551616 does not fit 64 bits; write 18446744073709551616.0."},
      {"2 * pi", "column 1: it reads no field; name one, as in `x * 2`."},
  };
  for (const auto& [text, want] : cases)
    EXPECT_EQ(problem_of(text), want) << text;
  EXPECT_EQ(problem_of(std::string(300, '(') + "x"),
            "column 201: the expression is more than 200 operations deep; make it two stages.");
  std::string sum = "x";
  for (int i = 0; i < 300; ++i)
    sum += "+x";
  EXPECT_EQ(problem_of(sum),
            "column 400: the expression is more than 200 operations deep; make it two stages.");
}

TEST(ExprOpErrors, SayWhereAndWhat) {
  const Context context = kit::context(Device::cpu());
  const Array x = kit::random({3, 4}, Dtype::f32, 1), row = kit::random({5}, Dtype::u8, 1);
  EXPECT_ERROR(eval("2 + x * row", {{"x", x}, {"row", row}}, context), invalid,
               "expr: column 7: `*` of f32 (3, 4) and u8 (5,): shapes (3, 4) and (5,) do not "
               "broadcast: axis -1 is 4 and 5; extents must be equal or 1.");
  EXPECT_ERROR(eval("1 + sqrt(x)", {{"x", kit::random({2}, Dtype::c64, 1)}}, context), unsupported,
               "expr: column 5: `sqrt` of c64 (2,): it takes f16, bf16, f32, f64.");
  EXPECT_ERROR(eval("log1(x)", {{"x", x}}, context), invalid,
               "expr: column 1: unknown function `log1`; did you mean `log1p`?");
  EXPECT_ERROR(eval("x * gain", {{"x", x}}, context), invalid,
               "expr: it reads `gain`, which is not among the 1 fields given.");
  EXPECT_ERROR(run_op(Op::with(find_op("expr"), ExprOp{"x * gain"}), {x}, context), invalid,
               "expr: got 1 input; it takes 2 (`x`, `gain`).");
  EXPECT_ERROR(run_op(Op::with(find_op("expr"), ExprOp{}), {x}, context), invalid,
               "expr: `expr` is missing.");
  EXPECT_ERROR(parse_stage("{op: expr, expr: \"x +\"}"), invalid,
               "stage:1:18: stage 1 (expr): column 4: expected a value, found the end.");
}

}  // namespace
}  // namespace forebay
