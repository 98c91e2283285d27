#include <numbers>

#include <forebay/array/require.h>
#include <forebay/ops/normalize/oracle_test.h>

namespace forebay {
namespace {

using namespace normalize_oracle;  // NOLINT(google-build-using-namespace): the tests' words

class NormalizeTest : public kit::DeviceTest {
 protected:
  Array run(const Array& host, const Normalize& settings) {
    const Context context = kit::context(device());
    return kit::to_host(normalize(kit::to_device(host, context), settings, context), context);
  }
};

DEVICE_TEST(NormalizeTest, ComputesStatisticsOverAnyAxes) {
  const Dims shape{2, 3, 4, 5};
  for (unsigned set = 1; set < 16; ++set) {
    std::vector<std::int64_t> axes;
    std::set<int> reduced;
    for (int axis = 0; axis < 4; ++axis) {
      if ((set >> axis & 1) == 0) continue;
      axes.push_back(axis % 2 == 0 ? axis : axis - 4);
      reduced.insert(axis);
    }
    const Array x = kit::random(shape, Dtype::f32, set);
    EXPECT_TRUE(within_bounds(run(x, {.axes = axes}), oracle(x, reduced))) << "axes " << set;
  }
}

DEVICE_TEST(NormalizeTest, TakesEveryDtype) {
  const Dims shape{9, 33};
  for (const Dtype in : kAllDtypes) {
    if (is_complex(in)) continue;
    const Array x = kit::random(shape, in, 3, is_float(in) || is_signed(in) ? -50 : 0, 100);
    const Oracle want = oracle(x, {1});
    const Array natural = run(x, {.axes = {{1}}});
    EXPECT_EQ(natural.dtype(), is_float(in) ? in : Dtype::f32);
    EXPECT_TRUE(within_bounds(natural, want)) << name_of(in);
    for (const Dtype out : {Dtype::f16, Dtype::bf16, Dtype::f32, Dtype::f64}) {
      EXPECT_TRUE(within_bounds(run(x, {.axes = {{1}}, .dtype = out}), want))
          << name_of(in) << " to " << name_of(out);
    }
  }
}

DEVICE_TEST(NormalizeTest, TakesEverySize) {
  // Around a warp and a tile; rows and columns, more than a block or a unit holds; interleaved
  // channels.
  struct Case {
    Dims shape;
    std::vector<std::int64_t> axes;
  };
  const std::vector<Case> cases = {{{1}, {0}},
                                   {{2}, {0}},
                                   {{31}, {0}},
                                   {{33}, {0}},
                                   {{1025}, {0}},
                                   {{4096}, {0}},
                                   {{4097}, {0}},
                                   {{16384}, {0}},
                                   {{16385}, {0}},
                                   {{300007}, {0}},
                                   {{70000, 7}, {1}},
                                   {{70000, 7}, {0}},
                                   {{3, 1024}, {1}},
                                   {{2, 1028}, {1}},
                                   {{5, 20000}, {1}},
                                   {{300, 1025}, {0}},
                                   {{20000, 3}, {0}},
                                   {{9000, 300}, {0}},
                                   {{4, 70, 70, 3}, {0, 1, 2}},
                                   {{7, 5, 900}, {0, 2}},
                                   {{30, 2, 3000}, {0, 2}},
                                   {{3, 40, 5, 6}, {1, 3}},
                                   {{1, 5, 1, 7, 1}, {0, 1}}};
  for (const auto& [shape, axes] : cases) {
    for (const Dtype dtype : {Dtype::f32, Dtype::u8, Dtype::f64}) {
      const Array x =
          kit::random(shape, dtype, 11, dtype == Dtype::u8 ? 0 : -4, dtype == Dtype::u8 ? 255 : 4);
      const std::set<int> reduced(axes.begin(), axes.end());
      EXPECT_TRUE(within_bounds(run(x, {.axes = axes}), oracle(x, reduced)))
          << to_string(shape) << " " << name_of(dtype);
    }
  }
}

DEVICE_TEST(NormalizeTest, TakesEmptyAndRankZero) {
  EXPECT_EQ(run(kit::random({0}, Dtype::f32, 1), {}).shape(), (Dims{0}));
  EXPECT_EQ(run(kit::random({3, 0}, Dtype::u8, 1), {.axes = {{1}}}).shape(), (Dims{3, 0}));
  EXPECT_EQ(run(kit::random({3, 0}, Dtype::u8, 1), {.layout = Layout::nc}).shape(), (Dims{3, 0}));
  const Array scalar = kit::generate({}, Dtype::f32, [](auto) { return 3.0; });
  EXPECT_TRUE(kit::near(run(scalar, {}), std::vector{kNaN}, 0));
  EXPECT_TRUE(kit::near(run(scalar, {.zero_std = ZeroStd::zero}), std::vector{0.0}, 0));
  EXPECT_TRUE(kit::near(run(scalar, {.mean = 1, .std = 4}), std::vector{0.5}, 0));
}

DEVICE_TEST(NormalizeTest, KnowsLayouts) {
  struct Case {
    Layout layout;
    Dims shape;
    std::set<int> batch, sample;  ///< reduced axes without and with per_sample
  };
  const std::vector<Case> cases = {{Layout::nchw, {3, 2, 5, 7}, {0, 2, 3}, {2, 3}},
                                   {Layout::nhwc, {3, 5, 7, 2}, {0, 1, 2}, {1, 2}},
                                   {Layout::ncl, {3, 2, 33}, {0, 2}, {2}},
                                   {Layout::nc, {33, 5}, {0}, {}},
                                   {Layout::none, {4, 5, 6}, {0, 1, 2}, {1, 2}}};
  for (const auto& [layout, shape, batch, sample] : cases) {
    const Array x = kit::random(shape, Dtype::f32, 5);
    EXPECT_TRUE(within_bounds(run(x, {.layout = layout}), oracle(x, batch)));
    if (!sample.empty()) {
      EXPECT_TRUE(within_bounds(run(x, {.layout = layout, .per_sample = true}), oracle(x, sample)));
    }
  }
}

DEVICE_TEST(NormalizeTest, ReadsEveryMemoryLayout) {
  const Array x = kit::random({6, 10, 8}, Dtype::f32, 9);
  const Array want = run(x, {.axes = {{1}}});
  for (const kit::Layout layout : kit::layouts()) {
    EXPECT_TRUE(kit::same_bits(run(kit::with_layout(x, layout), {.axes = {{1}}}), want))
        << static_cast<int>(layout);
  }
}

DEVICE_TEST(NormalizeTest, KeepsAccuracyFarFromZero) {
  const auto wave = [](double mean, double std) {
    return [=](std::int64_t i) { return mean + std * std::sin(static_cast<double>(i) * 0.7); };
  };
  const auto check = [&](const Array& x, const char* what) {
    EXPECT_TRUE(within_bounds(run(x, {}), oracle(x, {0}))) << what;
  };
  for (const std::int64_t n : {1025, 70000}) {
    check(kit::generate({n}, Dtype::f32, wave(1e4, 1e-2)), "f32 at 1e4, std 1e-2");
    check(kit::generate({n}, Dtype::f32, wave(3e38, 1e37)), "f32 near its end");
    check(kit::generate({n}, Dtype::f32, wave(0, 1e-42)), "f32 subnormals");
    check(kit::generate({n}, Dtype::f64, wave(1e15, 10)), "f64 at 1e15");
    check(kit::generate({n}, Dtype::f16, wave(40000, 20000)), "f16 near its end");
    check(kit::generate({n}, Dtype::i32, wave(2e9, 3)), "i32 at 2e9");
    std::vector<std::int64_t> i64(static_cast<std::size_t>(n));
    std::vector<std::uint64_t> u64(i64.size());
    for (std::size_t i = 0; i < i64.size(); ++i) {
      i64[i] = (std::int64_t{1} << 62) + static_cast<std::int64_t>(i % 5);
      u64[i] = ~std::uint64_t{0} - i % 3;
    }
    check(Array::from({n}, i64), "i64 at 2^62, std 1.4");
    check(Array::from({n}, u64), "u64 at 2^64, std 0.8");
    i64[1] = std::numeric_limits<std::int64_t>::min();
    check(Array::from({n}, i64), "i64 over its whole range");
  }
}

DEVICE_TEST(NormalizeTest, SurvivesAnOutlierInFront) {
  for (const std::int64_t n : {1025, 70000}) {
    const Array x = kit::generate(
        {n}, Dtype::f32, [](std::int64_t i) { return i == 0 ? 1e30 : std::sin(double(i)); });
    EXPECT_TRUE(within_bounds(run(x, {}), oracle(x, {0})));
  }
}

DEVICE_TEST(NormalizeTest, OfEqualElementsHasAStdOfExactlyZero) {
  for (const Dtype dtype : {Dtype::f16, Dtype::f32, Dtype::f64, Dtype::u8, Dtype::i64}) {
    for (const std::int64_t n : {7, 1025, 70000}) {
      const Array x = kit::generate({n}, dtype, [](auto) { return 100.1; });
      const std::vector<double> nans(static_cast<std::size_t>(n), kNaN), zeros(nans.size(), 0.0);
      EXPECT_TRUE(kit::near(run(x, {}), nans, 0));
      EXPECT_TRUE(kit::near(run(x, {.zero_std = ZeroStd::zero}), zeros, 0));
      EXPECT_TRUE(kit::near(run(x, {.epsilon = 1e-5}), zeros, 0));
    }
  }
}

DEVICE_TEST(NormalizeTest, PutsEpsilonWhereAsked) {
  const Array x =
      kit::generate({3, 33}, Dtype::f32, [](std::int64_t i) { return 1e-3 * std::sin(double(i)); });
  for (const EpsilonPlace place :
       {EpsilonPlace::variance, EpsilonPlace::std, EpsilonPlace::floor}) {
    for (const double epsilon : {1e-6, 0.1}) {
      const Normalize settings{.axes = {{1}}, .epsilon = epsilon, .epsilon_place = place};
      EXPECT_TRUE(within_bounds(run(x, settings), oracle(x, {1}, settings)))
          << static_cast<int>(place) << " " << epsilon;
    }
  }
}

DEVICE_TEST(NormalizeTest, DividesByNMinusDdof) {
  const Array x = kit::random({5, 6}, Dtype::f32, 2);
  for (const std::int64_t ddof : {1, 5}) {
    const Normalize settings{.axes = {{1}}, .ddof = ddof};
    EXPECT_TRUE(within_bounds(run(x, settings), oracle(x, {1}, settings)));
  }
  const std::vector<double> nans(30, kNaN);
  EXPECT_TRUE(kit::near(run(x, {.axes = {{1}}, .ddof = 6}), nans, 0));
  EXPECT_TRUE(kit::near(run(x, {.axes = {{1}}, .ddof = 7}), nans, 0));
}

DEVICE_TEST(NormalizeTest, ComputesWhatIsNotGiven) {
  // Few and many elements a slice; the constants run along the channels of every sample.
  for (const Dims& shape : {Dims{4, 3, 65}, Dims{2, 3, 40000}}) {
    for (const Dtype dtype : {Dtype::f32, Dtype::i32, Dtype::f64}) {
      const Array x = kit::random(shape, dtype, 4, -100, 200);
      for (const Normalize& settings :
           {Normalize{.mean = 31.5, .layout = Layout::ncl},
            Normalize{.mean = {{1, 20, -3}}, .layout = Layout::ncl},
            Normalize{.std = 2.5, .layout = Layout::ncl},
            Normalize{.std = {{1, 2, 4}}, .layout = Layout::ncl, .epsilon = 0.5}}) {
        EXPECT_TRUE(within_bounds(run(x, settings), oracle(x, {0, 2}, settings)));
        Normalize per_sample = settings;
        per_sample.per_sample = true;
        EXPECT_TRUE(within_bounds(run(x, per_sample), oracle(x, {2}, settings)));
      }
    }
  }
}

DEVICE_TEST(NormalizeTest, SpreadsNaNAndInfinityOverTheirSliceOnly) {
  for (const double bad : {kNaN, kInfinity, -kInfinity}) {
    for (const std::int64_t where : {0, 40}) {
      const Array x = kit::generate({2, 100}, Dtype::f32, [&](std::int64_t i) {
        return i == where ? bad : std::sin(double(i));
      });
      const Array got = run(x, {.axes = {{1}}});
      for (int i = 0; i < 200; ++i)
        EXPECT_EQ(std::isnan(kit::value(got.view(), i)), i < 100) << bad << " at " << where;
      // With a constant std: x - inf, as NumPy.
      const Array shifted = run(x, {.std = 1, .axes = {{1}}});
      EXPECT_TRUE(std::isnan(kit::value(shifted.view(), where)));
      if (!std::isnan(bad)) {
        EXPECT_EQ(kit::value(shifted.view(), 50), -bad);
      }
    }
  }
}

/// An origin that is not finite would make the whole slice NaN: with a constant std it is -inf. First
/// elements are origins, of slices on chip and of parts of longer ones, in rows and columns.
DEVICE_TEST(NormalizeTest, TakesNoOriginThatIsNotFinite) {
  struct Case {
    Dims shape;
    std::int64_t axis;
  };
  for (const auto& [shape, axis] : {Case{{2, 100}, 1}, Case{{2, 140'000}, 1}, Case{{200, 3}, 0},
                                    Case{{70'000, 2}, 0}, Case{{300, 700}, 0}}) {
    for (const Dtype dtype : {Dtype::f32, Dtype::f64}) {
      for (const double bad : {kInfinity, -kInfinity, kNaN}) {
        const Array x = kit::generate(
            shape, dtype, [&](std::int64_t i) { return i == 0 ? bad : std::sin(double(i)); });
        const Array got = run(x, {.std = 2, .axes = {{axis}}});
        const Array scaled = run(x, {.axes = {{axis}}});
        std::int64_t wrong = 0;
        for (std::int64_t i = 0; i < x.count(); ++i) {
          const double value = kit::value(got.view(), i), full = kit::value(scaled.view(), i);
          if ((axis == 0 ? i % shape[1] : i / shape[1]) != 0) {
            wrong += !std::isfinite(value) || !std::isfinite(full);
          } else {
            wrong += i == 0 || std::isnan(bad) ? !std::isnan(value) : value != -bad;
            wrong += !std::isnan(full);
          }
        }
        EXPECT_EQ(wrong, 0) << to_string(shape) << " " << name_of(dtype) << " " << bad;
      }
    }
  }
}

DEVICE_TEST(NormalizeTest, OfConstantsHasTheBitsOfNumPysFormula) {
  for (const Dtype in : {Dtype::u8, Dtype::f16, Dtype::bf16, Dtype::f32, Dtype::i64}) {
    const Array x = kit::random({5, 67}, in, 6, 0, 250);
    const Array got = run(x, {.mean = 0.1307, .std = 0.3081, .dtype = Dtype::f32});
    const Array f16 = run(x, {.mean = 0.1307, .std = 0.3081, .dtype = Dtype::f16});
    for (std::int64_t i = 0; i < x.count(); ++i) {
      const float want = (static_cast<float>(kit::value(x.view(), i)) - 0.1307F) / 0.3081F;
      EXPECT_EQ(got.as<float>()[i], want);
      EXPECT_EQ(f16.as<Half>()[i].bits, Half(want).bits);
    }
  }
  const Array x = kit::random({33}, Dtype::f64, 7);
  const Array got = run(x, {.mean = 0.1, .std = 3});
  for (int i = 0; i < 33; ++i)
    EXPECT_EQ(got.as<double>()[i], (x.as<double>()[i] - 0.1) / 3);
}

DEVICE_TEST(NormalizeTest, TakesConstantsPerChannel) {
  const std::vector<double> mean = {123.675, 116.28, 103.53}, std = {58.395, 57.12, 57.375};
  Normalize settings;
  settings.mean.emplace().values = mean;
  settings.std.emplace().values = std;
  const auto check = [&](const Dims& shape, const auto& channel_of) {
    const Array x = kit::random(shape, Dtype::u8, 8, 0, 255);
    const Array got = run(x, settings);
    for (std::int64_t i = 0; i < x.count(); ++i) {
      const auto c = static_cast<std::size_t>(channel_of(i));
      EXPECT_EQ(got.as<float>()[i],
                (static_cast<float>(x.as<std::uint8_t>()[i]) - static_cast<float>(mean[c])) /
                    static_cast<float>(std[c]));
    }
  };
  settings.layout = Layout::nhwc;
  check({2, 5, 7, 3}, [](std::int64_t i) { return i % 3; });
  settings.layout = Layout::nchw;
  check({2, 3, 5, 7}, [](std::int64_t i) { return i / 35 % 3; });
  settings.layout = Layout::nc;
  check({4, 3}, [](std::int64_t i) { return i % 3; });
  settings.layout = Layout::none;
  settings.axes = {{-2, -1}};
  check({2, 3, 5, 7}, [](std::int64_t i) { return i / 35 % 3; });
  settings.axes = {{1}};
  check({3, 9}, [](std::int64_t i) { return i / 9; });
}

DEVICE_TEST(NormalizeTest, OfAZeroConstantDoesWhatZeroStdSays) {
  const Array x = kit::generate({3}, Dtype::f32, [](std::int64_t i) { return double(i) - 1; });
  EXPECT_TRUE(
      kit::near(run(x, {.mean = 0, .std = 0}), std::vector{-kInfinity, kNaN, kInfinity}, 0));
  EXPECT_TRUE(
      kit::near(run(x, {.mean = 0, .std = 0, .zero_std = ZeroStd::zero}), std::vector(3, 0.0), 0));
  const Array pair = kit::generate({1, 2}, Dtype::f32, [](auto) { return 6.0; });
  EXPECT_TRUE(kit::near(
      run(pair, {.mean = 0, .std = {{0, 3}}, .layout = Layout::nc, .zero_std = ZeroStd::zero}),
      std::vector{0.0, 2.0}, 0));
}

// Inputs that made other libraries fail.
DEVICE_TEST(NormalizeTest, IsRightWhereOthersWereNot) {
  // NumPy 22956: the mean of ones over a slow axis stops at 2^24 / n in f32.
  const Array ones = kit::generate({20'000'000, 2}, Dtype::f16, [](auto) { return 1.0; });
  const Array shifted = run(ones, {.std = 1, .axes = {{0}}});
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < shifted.count(); ++i)
    wrong += static_cast<float>(shifted.as<Half>()[i]) != 0;
  EXPECT_EQ(wrong, 0);
  // NumPy 21941: the variance of 100,000 f16 normals was infinite.
  const Array normals = kit::generate({100'000}, Dtype::f16, [](std::int64_t i) {
    const double u = (i + 0.5) / 100'000, v = std::fmod(i * 0.618033988749895, 1.0);
    return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
  });
  EXPECT_TRUE(within_bounds(run(normals, {}), oracle(normals, {0})));
  // PyTorch 44350: the f16 mean of three values of 40000 overflowed.
  const Array large = kit::generate({3}, Dtype::f16, [](auto) { return 40000.0; });
  EXPECT_TRUE(kit::near(run(large, {.std = 1}), std::vector(3, 0.0), 0));
  // ArrayFire 2093: wrong from the second block of values of mixed sign on.
  const Array mixed = kit::random({1537}, Dtype::f32, 12, -1000, 1000);
  EXPECT_TRUE(within_bounds(run(mixed, {}), oracle(mixed, {0})));
}

DEVICE_TEST(NormalizeTest, GivesTheSameBitsEveryTimeAndOnAnyNumberOfThreads) {
  for (const Dims& shape : {Dims{300'000}, Dims{50'000, 6}, Dims{600, 1000}}) {
    const Array x = kit::random(shape, Dtype::f32, 13);
    const Array want = run(x, {.axes = {{0}}});
    for (const int threads : {1, 2, 3}) {
      const Context context = Context::create(device(), threads);
      EXPECT_TRUE(kit::same_bits(
          kit::to_host(normalize(kit::to_device(x, context), {.axes = {{0}}}, context), context),
          want));
    }
  }
}


}  // namespace
}  // namespace forebay
