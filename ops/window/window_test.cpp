#include "kit/kit.h"

#include <numbers>

#include <forebay/ops/window/window.h>

namespace forebay {
namespace {

class WindowTest : public kit::DeviceTest {};

Array run(const Array& host, const Window& settings, const Context& context) {
  return kit::to_host(window(kit::to_device(host, context), settings, context), context);
}

/// The modified Bessel function of order 0, by its series.
long double bessel(long double x) {
  long double sum = 1, term = 1;
  for (int k = 1; k < 200; ++k) {
    term *= x / 2 / k * (x / 2 / k);
    sum += term;
  }
  return sum;
}

/// The formulas of the page, in long double.
long double formula(const Window& settings, long double i, long double period) {
  const long double t = 2 * std::numbers::pi_v<long double> * i / period;
  const long double c1 = std::cos(t), c2 = std::cos(2 * t), c3 = std::cos(3 * t),
                    c4 = std::cos(4 * t);
  const long double u = 2 * i / period - 1;
  switch (settings.kind) {
    case WindowKind::boxcar:
      return 1;
    case WindowKind::bartlett:
      return 1 - std::abs(u);
    case WindowKind::hann:
      return 0.5L - 0.5L * c1;
    case WindowKind::hamming:
      return 0.54L - 0.46L * c1;
    case WindowKind::blackman:
      return 0.42L - 0.5L * c1 + 0.08L * c2;
    case WindowKind::nuttall:
      return 0.3635819L - 0.4891775L * c1 + 0.1365995L * c2 - 0.0106411L * c3;
    case WindowKind::blackmanharris:
      return 0.35875L - 0.48829L * c1 + 0.14128L * c2 - 0.01168L * c3;
    case WindowKind::flattop:
      return 0.21557895L - 0.41663158L * c1 + 0.277263158L * c2 - 0.083578947L * c3 +
             0.006947368L * c4;
    default:
      return bessel(settings.beta * std::sqrt(std::max(0.0L, 1 - u * u))) / bessel(settings.beta);
  }
}

std::vector<Window> every_window() {
  std::vector<Window> all;
  for (std::size_t kind = 0; kind < names_of(WindowKind{}).size(); ++kind) {
    for (const bool periodic : {true, false})
      all.push_back({.kind = static_cast<WindowKind>(kind), .periodic = periodic});
  }
  all.push_back({.kind = WindowKind::kaiser, .beta = 0});
  all.push_back({.kind = WindowKind::kaiser, .periodic = false, .beta = 30});
  return all;
}

TEST(WindowValues, FollowTheirFormulas) {
  for (const Window& settings : every_window()) {
    for (const std::int64_t n : {1, 2, 3, 4, 5, 16, 399, 400, 1024}) {
      const auto got = window_values(settings, n);
      ASSERT_EQ(std::ssize(got), n);
      for (std::int64_t i = 0; i < n; ++i) {
        const long double period = static_cast<long double>(settings.periodic ? n : n - 1);
        const long double want =
            n == 1 ? 1 : formula(settings, static_cast<long double>(i), period);
        EXPECT_NEAR(got[static_cast<std::size_t>(i)], static_cast<double>(want), 4e-15)
            << names_of(WindowKind{})[static_cast<std::size_t>(settings.kind)] << " " << i << " of "
            << n;
      }
    }
  }
}

TEST(WindowValues, AreSciPysToTheDigitsPrinted) {
  const auto expect = [](const Window& settings, const std::vector<double>& want) {
    const auto got = window_values(settings, std::ssize(want));
    for (std::size_t i = 0; i < want.size(); ++i)
      EXPECT_NEAR(got[i], want[i], 1e-8);
  };
  expect({.kind = WindowKind::hann}, {0, 0.5, 1, 0.5});
  expect({.kind = WindowKind::hamming, .periodic = false}, {0.08, 0.54, 1, 0.54, 0.08});
  expect({.kind = WindowKind::blackman}, {0, 0.34, 1, 0.34});
  expect({.kind = WindowKind::bartlett, .periodic = false}, {0, 0.5, 1, 0.5, 0});
  expect({.kind = WindowKind::kaiser, .periodic = false, .beta = 14},
         {7.72686684e-06, 3.46009194e-03, 4.65200189e-02, 2.29737120e-01, 5.99885316e-01,
          9.45674898e-01, 9.45674898e-01, 5.99885316e-01, 2.29737120e-01, 4.65200189e-02,
          3.46009194e-03, 7.72686684e-06});
}

DEVICE_TEST(WindowTest, MultipliesEveryDtypeLayoutAndAxis) {
  const Context context = kit::context(device());
  for (const Dtype dtype : kAllDtypes) {
    if (is_complex(dtype)) continue;
    const Array x = kit::random({4, 33, 3}, dtype, 5);
    const auto values = kit::values(x);
    const auto w = window_values({.kind = WindowKind::hamming}, 33);
    const bool wide = dtype == Dtype::f64;
    std::vector<double> want;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double factor = w[i / 3 % 33];
      want.push_back(wide ? values[i] * factor
                          : static_cast<float>(values[i]) * static_cast<float>(factor));
    }
    const Dtype out = is_float(dtype) ? dtype : Dtype::f32;
    for (const kit::Layout layout : kit::layouts()) {
      const Array got =
          run(kit::with_layout(x, layout), {.kind = WindowKind::hamming, .axis = 1}, context);
      EXPECT_EQ(got.dtype(), out);
      const double rounding = size_of(out) == 2 ? kit::epsilon(out) : 0;
      EXPECT_TRUE(kit::near(got, want, rounding)) << name_of(dtype);
    }
  }
  const Array whole = kit::random({2, 5}, Dtype::i32, 6);
  EXPECT_EQ(run(whole, {.dtype = Dtype::f64}, context).dtype(), Dtype::f64);
  EXPECT_EQ(run(kit::random({2, 0}, Dtype::f32, 6), {}, context).shape(), (Dims{2, 0}));
}

TEST(WindowErrors, SayWhatIsAllowed) {
  const Context context = kit::context(Device::cpu());
  EXPECT_ERROR(window(kit::random({3, 4}, Dtype::c64, 1), {}, context), unsupported,
               "window: `x` has dtype c64; supported: bool, integers, f16, bf16, f32, f64. Add an "
               "`abs` stage before it.");
  const Array x = kit::random({3, 4}, Dtype::f32, 1);
  EXPECT_ERROR(window(x, {.axis = -3}, context), invalid,
               "window: `axis` is -3, but `x` has shape (3, 4); it must be from -2 to 1.");
  EXPECT_ERROR(window(x, {.beta = -1}, context), invalid,
               "window: `beta` is -1; it must be between 0 and 700.");
  EXPECT_ERROR(window(x, {.dtype = Dtype::i8}, context), invalid,
               "window: `dtype` is i8; it must be f16, bf16, f32 or f64.");
}

}  // namespace
}  // namespace forebay
