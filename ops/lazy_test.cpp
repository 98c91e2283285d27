#include "kit/kit.h"

#include <cmath>
#include <optional>

#include <forebay/array/require.h>
#include <forebay/ops.h>
#include <forebay/ops/lazy.h>

namespace forebay {
namespace {

class LazyTest : public kit::DeviceTest {
 protected:
  void SetUp() override { context_ = kit::context(device()); }
  const Context& context() const { return *context_; }
  Array there(const Array& host) const { return kit::to_device(host, context()); }
  Array run(const Lazy& y) const { return kit::to_host(eval(y, context()), context()); }

 private:
  std::optional<Context> context_;
};

DEVICE_TEST(LazyTest, GivesTheBitsOfTheOpsOneByOne) {
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16, Dtype::f32, Dtype::f64, Dtype::u8}) {
    const Array host = kit::random({6, 50}, dtype, 1);
    for (const kit::Layout layout : kit::layouts()) {
      const Array x = there(kit::with_layout(host, layout));
      const Array y = run(clip((x - 0.13) / 0.31, -3, 3));
      const Array step1 = eval(x - 0.13, context()), step2 = eval(step1 / 0.31, context());
      EXPECT_TRUE(
          kit::same_bits(y, kit::to_host(clip(step2, {.min = -3, .max = 3}, context()), context())))
          << name_of(dtype);
      if (size_of(dtype) < 4) continue;  // normalize rounds f16 once
      const Array op = normalize(x, {.mean = 0.13, .std = 0.31}, context());
      EXPECT_TRUE(
          kit::same_bits(y, kit::to_host(clip(op, {.min = -3, .max = 3}, context()), context())));
      EXPECT_TRUE(
          kit::same_bits(run(log1p(abs(x))),
                         kit::to_host(log1p(abs(x, {}, context()), {}, context()), context())));
    }
  }
}

DEVICE_TEST(LazyTest, BroadcastsArraysAndKeepsThemAlive) {
  const Array host = kit::random({6, 50}, Dtype::f32, 1);
  const Array mean = kit::random({50}, Dtype::f32, 2),
              sigma = kit::random({6, 1}, Dtype::f32, 3, 1, 2);
  std::vector<double> want;
  for (std::int64_t i = 0; i < 300; ++i) {
    const auto x = static_cast<float>(kit::value(host.view(), i));
    const auto m = static_cast<float>(kit::value(mean.view(), i % 50));
    const auto s = static_cast<float>(kit::value(sigma.view(), i / 50));
    want.push_back(std::min(std::max((x - m) / s, -1.0F), 1.0F));
  }
  const auto built = [&] {
    const Array x = there(host);
    return clip((x - there(mean)) / there(sigma), -1, 1);
  };
  const Lazy y = built();  // its arrays have no other owner
  EXPECT_EQ(y.dtype(), Dtype::f32);
  EXPECT_EQ(y.shape(), (Dims{6, 50}));
  EXPECT_TRUE(kit::near(run(y), want, 0));
  EXPECT_TRUE(kit::near(run(y), want, 0));
}

DEVICE_TEST(LazyTest, HasEveryOperatorAndFunction) {
  const Array hx = Array::from<float>({4}, std::vector<float>{-2.5F, -0.5F, 0.5F, 3});
  const Array hy = Array::from<float>({4}, std::vector<float>{2, -0.5F, 4, 1});
  const Array x = there(hx), y = there(hy);
  const auto expect = [&](const Lazy& got, double (*want)(double, double)) {
    std::vector<double> all;
    for (std::int64_t i = 0; i < 4; ++i)
      all.push_back(want(kit::value(hx.view(), i), kit::value(hy.view(), i)));
    EXPECT_TRUE(kit::near(run(got), all, 2e-7, 2e-7));
  };
  expect(x + y, [](double a, double b) { return a + b; });
  expect(x - y, [](double a, double b) { return a - b; });
  expect(x * y, [](double a, double b) { return a * b; });
  expect(x / y, [](double a, double b) { return a / b; });
  expect(-x, [](double a, double) { return -a; });
  expect(x < y, [](double a, double b) { return double(a < b); });
  expect(x <= y, [](double a, double b) { return double(a <= b); });
  expect(x > y, [](double a, double b) { return double(a > b); });
  expect(x >= y, [](double a, double b) { return double(a >= b); });
  expect(x == y, [](double a, double b) { return double(a == b); });
  expect(x != y, [](double a, double b) { return double(a != b); });
  expect((x > 0) & (y > 1), [](double a, double b) { return double(a > 0 && b > 1); });
  expect((x > 0) | (y > 1), [](double a, double b) { return double(a > 0 || b > 1); });
  expect(~(0 < x), [](double a, double) { return double(!(a > 0)); });
  expect(abs(x), [](double a, double) { return std::fabs(a); });
  expect(sqrt(y), [](double, double b) { return std::sqrt(b); });
  expect(exp(x), [](double a, double) { return std::exp(a); });
  expect(expm1(x), [](double a, double) { return std::expm1(a); });
  expect(log(y), [](double, double b) { return std::log(b); });
  expect(log1p(y), [](double, double b) { return std::log1p(b); });
  expect(log2(y), [](double, double b) { return std::log2(b); });
  expect(log10(y), [](double, double b) { return std::log10(b); });
  expect(sin(x), [](double a, double) { return std::sin(a); });
  expect(cos(x), [](double a, double) { return std::cos(a); });
  expect(tanh(x), [](double a, double) { return std::tanh(a); });
  expect(floor(x), [](double a, double) { return std::floor(a); });
  expect(ceil(x), [](double a, double) { return std::ceil(a); });
  expect(round(x), [](double a, double) { return std::nearbyint(a); });
  expect(sign(x), [](double a, double) { return a < 0 ? -1.0 : 1.0; });
  expect(isnan(sqrt(x)), [](double a, double) { return double(a < 0); });
  expect(pow(abs(x), y), [](double a, double b) { return std::pow(std::fabs(a), b); });
  expect(minimum(x, y), [](double a, double b) { return std::min(a, b); });
  expect(maximum(x, 1), [](double a, double) { return std::max(a, 1.0); });
  expect(clip(x, -1, y), [](double a, double b) { return std::min(std::max(a, -1.0), b); });
  expect(where(x < y, x, 7), [](double a, double b) { return a < b ? a : 7; });
  expect(astype(x, Dtype::i32), [](double a, double) { return std::trunc(a); });
}

DEVICE_TEST(LazyTest, TakesComplexArraysApart) {
  const Array z = kit::random({5, 3}, Dtype::c64, 4);
  const Lazy lazy = there(z);
  std::vector<double> re, im, power;
  std::vector<std::complex<double>> conjugate;
  for (const auto& value : kit::complex_values(z)) {
    re.push_back(value.real());
    im.push_back(value.imag());
    power.push_back(std::norm(value));
    conjugate.push_back(std::conj(value));
  }
  EXPECT_TRUE(kit::near(run(real(lazy)), re, 0));
  EXPECT_TRUE(kit::near(run(imag(lazy)), im, 0));
  EXPECT_TRUE(kit::near(run(conj(lazy)), conjugate, 0));
  EXPECT_TRUE(kit::near(run(norm(lazy)), power, 2e-7));
}

DEVICE_TEST(LazyTest, MovesIndices) {
  const Array host = kit::random({4, 5, 3}, Dtype::u8, 5);
  const Lazy x = there(host);
  EXPECT_TRUE(
      kit::same_bits(run(permute(x, {2, 0, 1})), kit::to_host(host.permute({2, 0, 1}), context())));
  EXPECT_TRUE(
      kit::same_bits(run(slice(x, 1, 4, 0, -2)), kit::to_host(host.slice(1, 4, 0, -2), context())));
  EXPECT_TRUE(kit::same_bits(run(reshape(x, {-1, 15})), host.reshape({4, 15})));
  EXPECT_TRUE(kit::same_bits(run(broadcast_to(slice(x, 0, 1, 2), {2, 5, 3})),
                             kit::to_host(host.slice(0, 1, 2).broadcast_to({2, 5, 3}), context())));
  const Array planes = run(permute(astype(x, Dtype::f16) / 255, {2, 0, 1}));
  EXPECT_EQ(planes.shape(), (Dims{3, 4, 5}));
  EXPECT_EQ(planes.dtype(), Dtype::f16);
}

DEVICE_TEST(LazyTest, TakesEmptyArraysScalarsAndNumbersAlone) {
  EXPECT_EQ(run(Lazy(there(kit::random({0, 3}, Dtype::f32, 1))) + 1).shape(), (Dims{0, 3}));
  EXPECT_EQ(kit::values(run(Lazy(there(kit::random({}, Dtype::f32, 1))) * 0)),
            std::vector<double>{0});
  EXPECT_EQ(kit::values(run(astype(sqrt(Lazy(4)) + 1, Dtype::i32))), std::vector<double>{3});
  const Lazy x = there(kit::random({2}, Dtype::f16, 1));
  EXPECT_EQ((x * (Lazy(1) / 3)).dtype(), Dtype::f16);
  EXPECT_EQ((x * astype(2, Dtype::f32)).dtype(), Dtype::f32);
}

TEST(LazyErrors, ComeWhenTheExpressionIsBuilt) {
  const Context context = kit::context(Device::cpu());
  const Array x = kit::random({3, 4}, Dtype::f32, 1);
  EXPECT_ERROR(x - kit::random({5}, Dtype::u8, 1), invalid,
               "`-` of f32 (3, 4) and u8 (5,): shapes (3, 4) and (5,) do not broadcast: axis -1 is "
               "4 and 5; extents must be equal or 1.");
  EXPECT_ERROR(x & (x > 0), unsupported,
               "`&` of f32 (3, 4) and bool (3, 4): it takes bools. Put comparisons in parentheses: "
               "(x > 0) & (x < 1).");
  EXPECT_ERROR(
      reshape(permute(x, {1, 0}), {12}), invalid,
      "reshape: f32 of shape (4, 3) do not lie so that shape (12,) is an index map; `eval` "
      "them before.");
  EXPECT_ERROR(eval(Lazy(3), context), invalid, "eval: it is a number, not an array.");
  EXPECT_ERROR(permute(Lazy(3), {0}), invalid, "permute: it is a number, not an array.");
  ArrayView view = x.view();
  view.device = Device::cuda(1);  // elsewhere, as far as the checks can tell
  const Array elsewhere(view, x.owner());
  EXPECT_ERROR(x + elsewhere, invalid,
               "an expression reads arrays on cpu and on cuda:1; copy one of them with `copy_to` "
               "before.");
  EXPECT_ERROR(where(x > 0, 1, elsewhere), invalid,
               "an expression reads arrays on cpu and on cuda:1; copy one of them with `copy_to` "
               "before.");
  EXPECT_ERROR(eval(elsewhere * 2, context), invalid,
               "eval: the arrays are on cuda:1 but the stream on cpu; copy them with `copy_to` "
               "before.");
}

}  // namespace
}  // namespace forebay
