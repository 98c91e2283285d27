#include "kit/kit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include <forebay/array/dispatch.h>
#include <forebay/array/require.h>
#include <forebay/ops/expr_op/expr_op.h>
#include <forebay/ops/frame/frame.h>
#include <forebay/ops/mel/mel.h>
#include <forebay/ops/registry.h>
#include <forebay/ops/rfft/rfft.h>
#include <forebay/ops/window/window.h>

namespace forebay {
namespace {

class MelTest : public kit::DeviceTest {};

Array run(const Array& host, const Mel& settings, const Context& context) {
  return kit::to_host(mel(kit::to_device(host, context), settings, context), context);
}

TEST(MelFilters, AreLibrosasAndTorchaudiosByDefinition) {
  // Corners of 3 bands between 0 and 4000 Hz: htk, mel(4000) = 2146.06; slaney, mel(4000) =
  // 35.1637.
  for (const MelScale scale : {MelScale::htk, MelScale::slaney}) {
    for (const MelNorm norm : {MelNorm::none, MelNorm::slaney}) {
      const Mel settings{.sample_rate = 8000, .n_mels = 3, .scale = scale, .norm = norm};
      const auto filters = mel_filters(settings, 4001);  // one frequency a Hz
      const long double step = scale == MelScale::htk
                                   ? 2595 * std::log10(1 + 4000.0L / 700) / 4
                                   : (15 + 27 * std::log(4.0L) / std::log(6.4L)) / 4;
      const auto corner = [&](int i) -> long double {
        const long double m = step * i;
        if (scale == MelScale::htk) return 700 * (std::pow(10.0L, m / 2595) - 1);
        return m < 15 ? 200 * m / 3 : 1000 * std::pow(6.4L, (m - 15) / 27);
      };
      for (std::int64_t hz = 0; hz <= 4000; ++hz) {
        for (int m = 0; m < 3; ++m) {
          const long double a = corner(m), b = corner(m + 1), c = corner(m + 2);
          const auto f = static_cast<long double>(hz);
          long double want = f <= a || f >= c ? 0 : f < b ? (f - a) / (b - a) : (c - f) / (c - b);
          if (norm == MelNorm::slaney) want /= (c - a) / 2;
          EXPECT_NEAR(filters[static_cast<std::size_t>(hz * 3 + m)], static_cast<double>(want),
                      1e-12);
        }
      }
    }
  }
}

TEST(MelFilters, HaveTheirAreaOrTheirSum) {
  const auto equal =
      mel_filters({.sample_rate = 16000, .n_mels = 20, .norm = MelNorm::slaney}, 8001);
  const auto plain =
      mel_filters({.sample_rate = 16000, .n_mels = 20, .fmin = 100, .fmax = 7000}, 8001);
  for (std::size_t m = 0; m < 20; ++m) {
    double area = 0;
    for (std::size_t k = 0; k < 8001; ++k)
      area += equal[k * 20 + m];
    EXPECT_NEAR(area, 1, 1e-3);
  }
  for (const std::size_t hz : {300, 1000, 5000}) {
    double sum = 0;
    for (std::size_t m = 0; m < 20; ++m)
      sum += plain[hz * 20 + m];
    EXPECT_NEAR(sum, 1, 1e-12);  // between the first and the last peak
  }
  EXPECT_NEAR(plain[100 * 20], 0, 1e-12);
  EXPECT_NEAR(plain[7000 * 20 + 19], 0, 1e-12);
  // An odd transform: frequencies k * 1000 / 5.
  const auto odd = mel_filters({.sample_rate = 1000, .n_mels = 1, .n_fft = 5}, 3);
  const double peak = 700 * (std::sqrt(1 + 500.0 / 700) - 1);
  EXPECT_NEAR(odd[1], 200 / peak, 1e-12);
  EXPECT_NEAR(odd[2], 100 / (500 - peak), 1e-12);
}

/// Sums in f64, in the order of the frequencies; the law is that these are the bits.
Array sums_of(const Array& x, const Mel& settings) {
  const Dims& shape = x.shape();
  const std::int64_t bins = shape[shape.rank - 1], rows = x.count() / bins;
  const auto filters = mel_filters(settings, bins), values = kit::values(x);
  std::vector<double> sums;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t m = 0; m < settings.n_mels; ++m) {
      double sum = 0;
      for (std::int64_t k = 0; k < bins; ++k) {
        const double weight = filters[static_cast<std::size_t>(k * settings.n_mels + m)];
        sum += values[static_cast<std::size_t>(row * bins + k)] *
               (x.dtype() == Dtype::f64 ? weight : static_cast<float>(weight));
      }
      sums.push_back(sum);
    }
  }
  Dims out = shape;
  out[shape.rank - 1] = settings.n_mels;
  Array rounded = Array::empty(out, x.dtype(), kit::context(Device::cpu()));
  dispatch(Types<Half, BFloat16, float, double>{}, x.dtype(), "mel", "x", [&]<class T>(Type<T>) {
    std::transform(sums.begin(), sums.end(), rounded.as<T>(),
                   [](double sum) { return static_cast<T>(sum); });
  });
  return rounded;
}

DEVICE_TEST(MelTest, SumsBandsOfEveryFloatAndLayout) {
  const Context context = kit::context(device());
  const Mel settings{.sample_rate = 16000, .n_mels = 10, .norm = MelNorm::slaney};
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16, Dtype::f32, Dtype::f64}) {
    const Array x = kit::random({3, 5, 65}, dtype, 1, 0, 100);
    const Array want = sums_of(x, settings);
    for (const kit::Layout layout : kit::layouts()) {
      EXPECT_TRUE(kit::same_bits(run(kit::with_layout(x, layout), settings, context), want))
          << name_of(dtype);
    }
  }
  EXPECT_EQ(run(kit::random({65}, Dtype::f32, 1), settings, context).shape(), Dims{10});
  EXPECT_EQ(run(kit::random({0, 65}, Dtype::f32, 1), settings, context).shape(), (Dims{0, 10}));
}

DEVICE_TEST(MelTest, AnyNumberOfRowsFrequenciesAndBands) {
  const Context context = kit::context(device());
  const auto check = [&](const Dims& shape, Dtype dtype, const Mel& settings) {
    const Array x = kit::random(shape, dtype, 1, -1, 1);
    const Array got = run(x, settings, context);
    EXPECT_TRUE(kit::same_bits(got, sums_of(x, settings)))
        << to_string(shape) << " in " << settings.n_mels;
  };
  for (const std::int64_t rows : {1, 8, 31, 32, 33, 129, 300})
    check({rows, 201}, Dtype::f32, {.sample_rate = 16000, .n_mels = 80});
  for (const std::int64_t bins : {2, 3, 32, 33, 64, 1025}) {
    for (const std::int64_t bands : {1, 7, 16, 17, 128}) {  // some with no frequency at all
      for (const Dtype dtype : {Dtype::f16, Dtype::f32, Dtype::f64})
        check({5, bins}, dtype, {.sample_rate = 16000, .n_mels = bands});
    }
  }
  check(
      {40, 201}, Dtype::f32,
      {.sample_rate = 16000, .n_mels = 20, .fmin = 300, .fmax = 3400.0, .scale = MelScale::slaney});
  check({3, 40001}, Dtype::f32, {.sample_rate = 16000, .n_mels = 30});  // longer than shared memory
  check({2, 3, 7, 65}, Dtype::bf16, {.sample_rate = 16000, .n_mels = 13});
  check({2, 5}, Dtype::f32, {.sample_rate = 16000, .n_mels = 3, .fmin = 100, .fmax = 101.0});
}

DEVICE_TEST(MelTest, FrequenciesOutsideOfItsBandsDoNotReachABand) {
  const Context context = kit::context(device());
  const Array x = kit::generate({2, 201}, Dtype::f32, [](std::int64_t i) {
    return i % 201 < 3 || i % 201 > 125 ? std::numeric_limits<double>::quiet_NaN() : 1;
  });
  const Mel settings{.sample_rate = 16000, .n_mels = 4, .fmin = 100, .fmax = 5000.0};
  for (const double band : kit::values(run(x, settings, context)))
    EXPECT_TRUE(std::isfinite(band));
}

DEVICE_TEST(MelTest, EndsALogMelChain) {
  const Context context = kit::context(device());
  const Array x = kit::random({2, 700}, Dtype::f32, 3, -1, 1);
  const Mel settings{.sample_rate = 16000, .n_mels = 8};
  Array y = frame(kit::to_device(x, context), {.length = 400, .hop = 160}, context);
  y = rfft(window(y, {}, context), {}, context);
  y = mel(eval("norm(x)", {{"x", y}}, context), settings, context);
  y = kit::to_host(eval("log(x + 1e-6)", {{"x", y}}, context), context);
  ASSERT_EQ(y.shape(), (Dims{2, 2, 8}));

  const auto signal = kit::values(x), filters = mel_filters(settings, 201),
             w = window_values({}, 400);
  std::vector<double> want;
  for (std::size_t row = 0; row < 4; ++row) {
    std::vector<double> bands(8);
    for (std::size_t k = 0; k <= 200; ++k) {
      std::complex<double> sum;
      for (std::size_t j = 0; j < 400; ++j) {
        const double angle = -2 * std::numbers::pi * static_cast<double>(j * k % 400) / 400;
        sum += std::polar(signal[row / 2 * 700 + row % 2 * 160 + j] * w[j], angle);
      }
      for (std::size_t m = 0; m < 8; ++m)
        bands[m] += std::norm(sum) * filters[k * 8 + m];
    }
    for (const double band : bands)
      want.push_back(std::log(band + 1e-6));
  }
  EXPECT_TRUE(kit::near(y, want, 1e-5, 1e-5));
}

TEST(MelErrors, SayWhatIsAllowed) {
  const Context context = kit::context(Device::cpu());
  const Array x = kit::random({3, 201}, Dtype::f32, 1);
  EXPECT_ERROR(mel(x, {}, context), invalid, "mel: `sample_rate` is 0; it must be above 0.");
  EXPECT_ERROR(
      mel(kit::random({3, 201}, Dtype::c64, 1), {.sample_rate = 16000}, context), unsupported,
      "mel: `x` has dtype c64; supported: f16, bf16, f32, f64. Add an `abs` stage before it.");
  EXPECT_ERROR(mel(kit::random({3, 1}, Dtype::f32, 1), {.sample_rate = 16000}, context), invalid,
               "mel: `x` of shape (3, 1) has 1 frequencies along its last axis; it must have at "
               "least 2. Take an `rfft` before it.");
  const Op op = Op::with(find_op("mel"), Mel{.sample_rate = 16000});
  EXPECT_ERROR(
      op.infer(std::array{ArraySpec{Dtype::f32, {std::int64_t{1} << 31}}}), invalid,
      "mel: `x` of shape (2147483648,) has 2147483648 frequencies along its last axis; it may have "
      "at most 2147483647.");
  EXPECT_ERROR(
      mel(x, {.sample_rate = 16000, .n_fft = 512}, context), invalid,
      "mel: `n_fft` is 512, which gives 257 frequencies, but `x` of shape (3, 201) has 201 "
      "along its last axis.");
  EXPECT_ERROR(
      mel(x, {.sample_rate = 16000, .fmax = 9000.0}, context), invalid,
      "mel: `fmin` is 0 and `fmax` 9000; fmin must be below fmax, and fmax at most half of "
      "`sample_rate`, 8000.");
  EXPECT_ERROR(
      mel(x, {.sample_rate = 16000, .fmin = 8000}, context), invalid,
      "mel: `fmin` is 8000 and `fmax` 8000; fmin must be below fmax, and fmax at most half "
      "of `sample_rate`, 8000.");
  EXPECT_ERROR(mel(x, {.sample_rate = 16000, .n_mels = 0}, context), invalid,
               "mel: `n_mels` is 0; it must be between 1 and 65536.");
}

}  // namespace
}  // namespace forebay
