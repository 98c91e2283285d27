// One file, since all of it shares the fixture.
#include <forebay/ops/histogram/histogram.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "kit/kit.h"
#include "oracle_test.h"

#include <forebay/array/require.h>
#include <forebay/ops/body_test.h>

namespace forebay {
namespace {

using histogram_oracle::Counts;
using histogram_oracle::search;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Ascending from `low` to `high`, each within one unit in the last place of its true value.
void expect_equal_widths(const Array& edges, std::int64_t first, double low, double high) {
  const std::int64_t bins = edges.shape()[edges.rank() - 1] - 1;
  ASSERT_EQ(kit::value(edges.view(), first), low);
  ASSERT_EQ(kit::value(edges.view(), first + bins), high);
  const double unit = 2 * kit::epsilon(edges.dtype()) * std::max(std::fabs(low), std::fabs(high));
  for (std::int64_t i = 0; i <= bins; ++i) {
    const long double want = low + (static_cast<long double>(high) - low) * i / bins;
    ASSERT_NEAR(kit::value(edges.view(), first + i), static_cast<double>(want), unit)
        << "edge " << i;
    if (i > 0) {
      ASSERT_LE(kit::value(edges.view(), first + i - 1), kit::value(edges.view(), first + i))
          << "edge " << i;
    }
  }
}

class HistogramTest : public kit::DeviceTest {
 protected:
  HistogramResult run(const Array& host, const Histogram& settings) {
    const Context context = kit::context(device());
    return to_host(histogram(kit::to_device(host, context), settings, context), context);
  }
  HistogramResult run(const Array& host, const Array& weights, const Histogram& settings) {
    const Context context = kit::context(device());
    return to_host(histogram(kit::to_device(host, context), kit::to_device(weights, context),
                             settings, context),
                   context);
  }
  static HistogramResult to_host(const HistogramResult& result, const Context& context) {
    return {kit::to_host(result.hist, context), kit::to_host(result.edges, context),
            kit::to_host(result.ignored, context)};
  }

  /// Runs and compares with the law.
  HistogramResult expect_law(const Array& x, const std::set<int>& counted,
                             const Histogram& settings) {
    const HistogramResult got = run(x, settings);
    const Counts want = search(x, got.edges, counted);
    EXPECT_EQ(got.hist.dtype(), Dtype::i64);
    EXPECT_EQ(got.ignored.dtype(), Dtype::i64);
    EXPECT_TRUE(kit::near(got.hist, want.hist, 0));
    EXPECT_TRUE(kit::near(got.ignored, want.ignored, 0));
    return got;
  }
  std::vector<double> counts(const Array& x, const Histogram& settings) {
    return kit::values(run(x, settings).hist);
  }
};

using List = std::vector<double>;

template <class T>
Array array(const std::vector<T>& values) {
  return Array::from(Dims{static_cast<std::int64_t>(values.size())}, values);
}

DEVICE_TEST(HistogramTest, CountsEveryDtypeAsASearchInTheEdges) {
  for (const Dtype dtype : kAllDtypes) {
    if (is_complex(dtype)) continue;
    SCOPED_TRACE(name_of(dtype));
    const Array x =
        kit::random({9, 211}, dtype, 3, is_float(dtype) || is_signed(dtype) ? -60 : 0, 100);
    const Dtype edge = is_float(dtype) && dtype != Dtype::f64 ? Dtype::f32 : Dtype::f64;
    const HistogramResult fixed = expect_law(x, {0, 1}, {.bins = 13, .range = {{-12.3, 71.7}}});
    EXPECT_EQ(fixed.edges.dtype(), edge);
    const auto round = [&](double value) {
      return edge == Dtype::f32 ? double{static_cast<float>(value)} : value;
    };
    expect_equal_widths(fixed.edges, 0, round(-12.3), round(71.7));
    const HistogramResult inferred = expect_law(x, {0, 1}, {.bins = 13});
    EXPECT_EQ(inferred.edges.dtype(), edge);
    EXPECT_EQ(kit::values(inferred.ignored), List{0});
    const HistogramResult given =
        expect_law(x, {0, 1}, {.edges = {{-30.5, -1, 0, 0, 1, 7.25, 90}}});
    EXPECT_EQ(given.edges.dtype(), edge);
    EXPECT_EQ(kit::values(given.edges), (List{-30.5, -1, 0, 0, 1, 7.25, 90}));
  }
}

DEVICE_TEST(HistogramTest, CountsEverySizeAndNumberOfBins) {
  for (const std::int64_t n : {1, 31, 33, 1025, 300'007}) {
    const Array x = kit::random({n}, Dtype::f32, 5);
    for (const std::int64_t bins : {1, 10, 64, 256, 1000, 5000, 20'000}) {
      SCOPED_TRACE(fmt::format("{} values, {} bins", n, bins));
      expect_law(x, {0}, {.bins = bins, .range = {{-3, 3}}});
      const HistogramResult inferred = expect_law(x, {0}, {.bins = bins});
      if (n > 1) {
        const auto [least, greatest] = std::minmax_element(x.as<float>(), x.as<float>() + n);
        expect_equal_widths(inferred.edges, 0, *least, *greatest);
      }
    }
  }
}

DEVICE_TEST(HistogramTest, CountsOverAnyAxes) {
  struct Case {
    Dims shape;
    Histogram settings;
    std::set<int> counted;
    Dims kept;
  };
  const std::vector<Case> cases = {
      {{2, 3, 4, 5}, {}, {0, 1, 2, 3}, {}},
      {{2, 3, 4, 5}, {.axes = {{1}}}, {1}, {2, 4, 5}},
      {{2, 3, 4, 5}, {.axes = {{0, -1}}}, {0, 3}, {3, 4}},
      {{2, 3, 4, 5}, {.axes = {{0, 2}}, .per_sample = false}, {0, 2}, {3, 5}},
      {{9, 40}, {.per_sample = true}, {1}, {9}},
      {{9}, {.per_sample = true}, {}, {9}},
      {{70000, 7}, {.per_sample = true}, {1}, {70000}},
      {{3, 2, 50, 70}, {.layout = Layout::nchw}, {0, 2, 3}, {2}},
      {{3, 50, 70, 3}, {.layout = Layout::nhwc}, {0, 1, 2}, {3}},
      {{3, 50, 70, 3}, {.layout = Layout::nhwc, .per_sample = true}, {1, 2}, {3, 3}},
      {{4, 3, 1025}, {.layout = Layout::ncl, .per_sample = true}, {2}, {4, 3}},
      {{5000, 33}, {.layout = Layout::nc}, {0}, {33}},
      {{64, 300}, {.layout = Layout::nc}, {0}, {300}},
      {{3, 100'000}, {.per_sample = true}, {1}, {3}},
  };
  for (const auto& [shape, settings, counted, kept] : cases) {
    for (const std::int64_t bins : {7, 700}) {
      if (count_of(kept) * bins > 10'000'000) continue;
      SCOPED_TRACE(fmt::format("{}, {} bins", to_string(shape), bins));
      const Array x = kit::random(shape, Dtype::f32, 6);
      Histogram with_bins = settings;
      with_bins.bins = bins;
      const HistogramResult inferred = expect_law(x, counted, with_bins);
      with_bins.range = {{-2, 3.5}};
      const HistogramResult fixed = expect_law(x, counted, with_bins);
      Dims hist = kept, edges = kept;
      hist.push_back(bins);
      edges.push_back(bins + 1);
      EXPECT_EQ(fixed.hist.shape(), hist);
      EXPECT_EQ(fixed.ignored.shape(), kept);
      EXPECT_EQ(fixed.edges.shape(), (Dims{bins + 1}));
      EXPECT_EQ(inferred.edges.shape(), edges);
    }
  }
}

DEVICE_TEST(HistogramTest, ReadsEveryMemoryLayout) {
  const Array x = kit::random({6, 10, 8}, Dtype::f32, 9);
  const Histogram settings{.bins = 20, .range = {{-4, 4}}, .per_sample = true};
  const HistogramResult want = run(x, settings);
  for (const kit::Layout layout : kit::layouts()) {
    EXPECT_TRUE(kit::same_bits(run(kit::with_layout(x, layout), settings).hist, want.hist))
        << static_cast<int>(layout);
  }
}

DEVICE_TEST(HistogramTest, PutsEveryEdgeAndItsNeighboursInTheRightBin) {
  for (const auto& [low, high] :
       {std::pair{0.0, 0.99}, {-1e30, 3e30}, {1000.0, 1000.25}, {-0.1, 1e-30}, {1e-40, 3e-40}}) {
    for (const std::int64_t bins : {3, 10, 64, 300}) {
      const Histogram settings{.bins = bins, .range = {{low, high}}};
      const auto edges = kit::values(run(array<float>({0}), settings).edges);
      std::vector<float> x;
      for (const double edge : edges) {
        const auto e = static_cast<float>(edge);
        x.insert(x.end(), {e, std::nextafter(e, -HUGE_VALF), std::nextafter(e, HUGE_VALF)});
      }
      expect_law(array(x), {0}, settings);
      std::vector<double> wide;
      const auto f64_edges = kit::values(run(array<double>({0}), settings).edges);
      for (const double e : f64_edges)
        wide.insert(wide.end(), {e, std::nextafter(e, -HUGE_VAL), std::nextafter(e, HUGE_VAL)});
      expect_law(array(wide), {0}, settings);
    }
  }
}

DEVICE_TEST(HistogramTest, ClosesTheLastBinOnly) {
  EXPECT_EQ(counts(array<float>({0, 1, 2, 3}), {.bins = 3, .range = {{0, 3}}}), (List{1, 1, 2}));
  EXPECT_EQ(counts(array<float>({0, 1, 2}), {.edges = {{0, 1, 2}}}), (List{1, 2}));
  EXPECT_EQ(counts(array<float>({1, 1}), {.edges = {{0, 1, 1}}}), (List{0, 2}));
  EXPECT_EQ(counts(array<float>({0, 1, 1, 2}), {.edges = {{0, 1, 1, 2}}}), (List{1, 0, 3}));
  EXPECT_EQ(counts(array<float>({1, 2, 3}), {.edges = {{2, 2}}}), (List{1}));
  EXPECT_EQ(counts(array<double>({-5, 0, 5, kInfinity}), {.edges = {{-kInfinity, 0, kInfinity}}}),
            (List{1, 3}));
}

DEVICE_TEST(HistogramTest, IgnoresAndCountsNaNAndWhatLiesOutside) {
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16, Dtype::f32, Dtype::f64}) {
    const std::vector<double> values = {kNaN, -kInfinity, -0.5, 0, 0.5, 1, 1.5, kInfinity, kNaN};
    const Array x = kit::generate(
        {9}, dtype, [&](std::int64_t i) { return values[static_cast<std::size_t>(i)]; });
    const HistogramResult fixed = run(x, {.bins = 2, .range = {{0, 1}}});
    EXPECT_EQ(kit::values(fixed.hist), (List{1, 2}));
    EXPECT_EQ(kit::values(fixed.ignored), List{6});
    const HistogramResult inferred = run(x, {.bins = 2});
    EXPECT_EQ(kit::values(inferred.edges), (List{-0.5, 0.5, 1.5}));
    EXPECT_EQ(kit::values(inferred.hist), (List{2, 3}));
    EXPECT_EQ(kit::values(inferred.ignored), List{4});
  }
  const HistogramResult nothing = run(array<float>({NAN, INFINITY}), {.bins = 2});
  EXPECT_EQ(kit::values(nothing.edges), (List{0, 0.5, 1}));
  EXPECT_EQ(kit::values(nothing.hist), (List{0, 0}));
  EXPECT_EQ(kit::values(nothing.ignored), List{2});
}

DEVICE_TEST(HistogramTest, OfEqualValuesReachesHalfAUnitToEachSide) {
  const HistogramResult got =
      run(kit::generate({5}, Dtype::f32, [](auto) { return 3.0; }), {.bins = 4});
  EXPECT_EQ(kit::values(got.edges), (List{2.5, 2.75, 3, 3.25, 3.5}));
  EXPECT_EQ(kit::values(got.hist), (List{0, 0, 5, 0}));
  EXPECT_EQ(kit::values(run(array<float>({7, 3}), {.bins = 2, .range = {{3, 3}}}).edges),
            (List{2.5, 3, 3.5}));
  EXPECT_EQ(kit::values(run(array<std::uint8_t>({0, 0}), {.bins = 1}).edges), (List{-0.5, 0.5}));
}

DEVICE_TEST(HistogramTest, OfNothingIsZerosFromZeroToOne) {
  const HistogramResult got = run(kit::random({0}, Dtype::f32, 1), {.bins = 2});
  EXPECT_EQ(kit::values(got.edges), (List{0, 0.5, 1}));
  EXPECT_EQ(kit::values(got.hist), (List{0, 0}));
  EXPECT_EQ(kit::values(got.ignored), List{0});
  const HistogramResult rows =
      run(kit::random({2, 0, 3}, Dtype::i64, 1), {.bins = 2, .per_sample = true});
  EXPECT_EQ(kit::values(rows.edges), (List{0, 0.5, 1, 0, 0.5, 1}));
  EXPECT_EQ(kit::values(rows.hist), (List{0, 0, 0, 0}));
  const HistogramResult none =
      run(kit::random({0, 4}, Dtype::f32, 1), {.bins = 2, .range = {{1, 3}}, .per_sample = true});
  EXPECT_EQ(none.hist.shape(), (Dims{0, 2}));
  EXPECT_EQ(kit::values(none.edges), (List{1, 2, 3}));
  EXPECT_EQ(run(kit::random({5, 0}, Dtype::f32, 1), {.bins = 2, .layout = Layout::nc}).hist.shape(),
            (Dims{0, 2}));
  EXPECT_EQ(counts(kit::generate({}, Dtype::f32, [](auto) { return 0.25; }),
                   {.bins = 2, .range = {{0, 1}}}),
            (List{1, 0}));
}

DEVICE_TEST(HistogramTest, ComparesIntegersExactly) {
  constexpr std::int64_t kBig = std::int64_t{1} << 53;
  const auto big = static_cast<double>(kBig);
  const Array x = array<std::int64_t>({kBig - 1, kBig, kBig + 1, kBig + 2, -kBig - 1});
  // In f64, 2^53 + 1 would be 2^53 and fall into the second bin's neighbour.
  EXPECT_EQ(counts(x, {.edges = {{-big, big, big + 2, big + 4}}}), (List{1, 2, 1}));
  EXPECT_EQ(kit::values(run(x, {.edges = {{-big, big + 2}}}).ignored), List{1});
  constexpr std::uint64_t kTop = ~std::uint64_t{0};
  expect_law(array<std::uint64_t>({0, 1, kTop - 2048, kTop - 1, kTop}), {0},
             {.edges = {{-1, 0.5, 0x1p64 - 2048, 0x1p64}}});
  EXPECT_EQ(counts(array<std::uint64_t>({0, 1, kTop - 2048, kTop - 2047, kTop}),
                   {.edges = {{0.5, 0x1p64 - 2048, 0x1p64}}}),
            (List{2, 2}));
  for (const auto& inferred :
       {array<std::uint64_t>({kTop, kTop - 1}), array<std::uint64_t>({0, kTop}),
        array<std::int64_t>({kBig + 1, kBig + 3}), array<std::int64_t>({INT64_MIN, INT64_MAX}),
        array<std::int64_t>({INT64_MAX}), array<std::int64_t>({-kBig - 1})}) {
    const HistogramResult got = expect_law(inferred, {0}, {.bins = 3});
    EXPECT_EQ(kit::values(got.ignored), List{0});
  }
}

DEVICE_TEST(HistogramTest, AddsUpWeights) {
  for (const std::int64_t bins : {5, 300, 20'000}) {
    for (const Dims& shape : {Dims{1}, Dims{33}, Dims{200'000}, Dims{50, 33}, Dims{3, 4000}}) {
      SCOPED_TRACE(fmt::format("{}, {} bins", to_string(shape), bins));
      const Array x = kit::random(shape, Dtype::f32, 7);
      for (const Dtype dtype : {Dtype::f32, Dtype::f64, Dtype::u8, Dtype::i64, Dtype::f16}) {
        const Array weights = kit::random(shape, dtype, 8, is_integer(dtype) ? 0 : -1, 9);
        Histogram settings{.bins = bins, .range = {{-3, 2}}};
        std::set<int> counted = {0};
        if (shape.rank == 2 && shape[0] == 3) {
          settings.per_sample = true;
          counted = {1};
        } else if (shape.rank == 2) {
          settings.layout = Layout::nc;
        }
        const HistogramResult got = run(x, weights, settings);
        const Counts want = search(x, got.edges, counted, &weights);
        EXPECT_EQ(got.hist.dtype(), Dtype::f64);
        EXPECT_TRUE(kit::near(got.hist, want.hist, 0x1p-40, 0x1p-30));
        EXPECT_TRUE(kit::near(got.ignored, want.ignored, 0));
      }
    }
  }
  const HistogramResult got = run(array<float>({0, 1, NAN, 9}), array<float>({2, NAN, NAN, 5}),
                                  {.bins = 2, .range = {{0, 1}}});
  EXPECT_TRUE(kit::near(got.hist, List{2, kNaN}, 0));
  EXPECT_EQ(kit::values(got.ignored), List{2});
}

DEVICE_TEST(HistogramTest, OfDensityIntegratesToOne) {
  const Array x = array<float>({0, 0.5, 1, 1, 3, 9});
  EXPECT_EQ(counts(x, {.edges = {{0, 1, 5}}, .density = true}), (List{2.0 / 1 / 5, 3.0 / 4 / 5}));
  const Array weights = array<float>({1, 1, 2, 2, 4, 100});
  EXPECT_EQ(kit::values(run(x, weights, {.edges = {{0, 1, 5}}, .density = true}).hist),
            (List{2.0 / 1 / 10, 8.0 / 4 / 10}));
  EXPECT_TRUE(
      kit::near(run(array<float>({9}), {.bins = 2, .range = {{0, 1}}, .density = true}).hist,
                List{kNaN, kNaN}, 0));
  const Array rows = kit::random({3, 1025}, Dtype::f32, 3);
  const auto density =
      counts(rows, {.bins = 16, .range = {{-4, 4}}, .per_sample = true, .density = true});
  for (std::size_t row = 0; row < 3; ++row) {
    double sum = 0;
    for (std::size_t i = 0; i < 16; ++i)
      sum += density[row * 16 + i] * 0.5;
    EXPECT_NEAR(sum, 1, 1e-14);
  }
}

DEVICE_TEST(HistogramTest, GivesTheSameBitsEveryTimeAndOnAnyNumberOfThreads) {
  for (const Dims& shape : {Dims{300'000}, Dims{5'000, 60}, Dims{60, 5'000}}) {
    const Array x = kit::random(shape, Dtype::f32, 13),
                weights = kit::random(shape, Dtype::f32, 14);
    const Histogram settings{.bins = 100, .axes = {{0}}};
    const HistogramResult want = run(x, weights, settings);
    for (const int threads : {1, 2, 3}) {
      const Context context = Context::create(device(), threads);
      const HistogramResult got =
          to_host(histogram(kit::to_device(x, context), kit::to_device(weights, context), settings,
                            context),
                  context);
      EXPECT_TRUE(kit::same_bits(got.hist, want.hist));
      EXPECT_TRUE(kit::same_bits(got.edges, want.edges));
    }
  }
}

DEVICE_TEST(HistogramTest, LeavesOutWhatNobodyReads) {
  const Context context = kit::context(device());
  const Array x = kit::to_device(kit::random({4, 100}, Dtype::f32, 2), context);
  const Op op = Op::with(find_op("histogram"), Histogram{.bins = 5, .per_sample = true});
  const ArraySpec in{Dtype::f32, {4, 100}};
  const Problem problem{{in}, op.infer({&in, 1})};
  const auto body = op.entry().body(device().kind)(op, problem, context);
  const HistogramResult want = run(kit::to_host(x, context), op.settings<Histogram>());
  for (int kept = 0; kept < 3; ++kept) {
    std::vector<Array> results;
    std::vector<ArrayView> views;
    for (int i = 0; i < 3; ++i) {
      const ArraySpec& spec = problem.outputs[static_cast<std::size_t>(i)];
      results.push_back(Array::empty(spec.shape, spec.dtype, context));
      views.push_back(results.back().view());
      if (i != kept) views.back().data = nullptr;
    }
    run_body(*body, {x.view()}, views, context);
    const Array& wanted = kept == 0 ? want.hist : kept == 1 ? want.edges : want.ignored;
    EXPECT_TRUE(
        kit::same_bits(kit::to_host(results[static_cast<std::size_t>(kept)], context), wanted))
        << "output " << kept;
  }
}

// Inputs that made other libraries fail.
DEVICE_TEST(HistogramTest, IsRightWhereOthersWereNot) {
  // PyTorch 85853 and CuPy's weighted kernel: NaN in the first bin.
  EXPECT_EQ(counts(array<float>({NAN, 0.9F}), {.bins = 2, .range = {{0, 1}}}), (List{0, 1}));
  // PyTorch 87657: CPU and CUDA differ by one count.
  const Array points = kit::generate({1001}, Dtype::f32, [](std::int64_t i) {
    return double{0.99F} * static_cast<double>(i) / 1000;
  });
  EXPECT_EQ(counts(points, {.range = {{0, 0.99}}}),
            (List{100, 100, 100, 100, 100, 100, 100, 100, 100, 101}));
  // cuda-histogram 65: integer data made the bounds integers.
  const HistogramResult ints = run(array<std::int32_t>({0, 8}), {.bins = 4, .range = {{0.5, 8.5}}});
  EXPECT_EQ(kit::values(ints.hist), (List{0, 0, 0, 1}));
  EXPECT_EQ(kit::values(ints.ignored), List{1});
  // NumPy 8627: an index fault where the values' spacing exceeds the bins' width.
  EXPECT_EQ(counts(array<double>({0x1p53}), {}), (List{0, 0, 0, 0, 0, 0, 0, 0, 0, 1}));
  EXPECT_EQ(counts(array<float>({0x1p24F, 0x1p24F + 2}), {.bins = 3}).back(), 1);
  expect_law(array<float>({0x1p24F, 0x1p24F + 2, 0x1p24F + 4}), {0}, {.bins = 7});
  // CuPy and CUB: more than 2,097,151 bins overflow or exhaust memory.
  const HistogramResult many = expect_law(array<double>({0, 1, 2'999'998.5, 3'000'000}), {0},
                                          {.bins = 3'000'000, .range = {{0, 3e6}}});
  EXPECT_EQ(kit::value(many.hist.view(), 2'999'999), 1);
  EXPECT_EQ(kit::value(many.hist.view(), 2'999'998), 1);
  // CuPy: the last bin lost its upper edge from 2^24 on, and integers above the last edge were
  // counted.
  EXPECT_EQ(counts(array<float>({0x1p24F, 0x1p25F}), {.edges = {{0, 0x1p24, 0x1p25}}}),
            (List{0, 2}));
  EXPECT_EQ(counts(array<std::int64_t>({0, 1, 2, 3}), {.edges = {{0, 1, 2.5}}}), (List{1, 2}));
  // ArrayFire: values outside in the end bins. MatX: the top edge outside.
  EXPECT_EQ(counts(array<float>({-1, 0, 2, 3}), {.bins = 2, .range = {{0, 2}}}), (List{1, 1}));
  // Bounds of the largest doubles: their difference is infinite.
  expect_law(array<double>({-1.7e308, 0, 1.7e308}), {0}, {.bins = 4});
  expect_law(array<double>({-1.7e308, 0, 1.7e308}), {0},
             {.bins = 4, .range = {{-1.7e308, 1.7e308}}});
}


void infer(const Histogram& settings, std::vector<ArraySpec> inputs) {
  Op::with(find_op("histogram"), settings).infer(inputs);
}

TEST(HistogramErrors, SayWhatIsWrong) {
  const ArraySpec f32{Dtype::f32, {4}}, f64{Dtype::f64, {4}};
  EXPECT_ERROR(infer({}, {{Dtype::c64, {4}}}), unsupported,
               "histogram: `x` has dtype c64; supported: bool, integers, f16, bf16, f32, f64. Add "
               "an `abs` stage before it.");
  EXPECT_ERROR(infer({}, {f32, {Dtype::c64, {4}}}), unsupported,
               "histogram: `weights` has dtype c64; supported: bool, integers, f16, bf16, f32, "
               "f64. Add an `abs` stage before it.");
  EXPECT_ERROR(infer({}, {f32, {Dtype::f32, {5}}}), invalid,
               "histogram: `weights` has shape (5,), but `x` has shape (4,); they must be equal.");
  EXPECT_ERROR(infer({.bins = 0}, {f32}), invalid,
               "histogram: `bins` is 0; it must be at least 1.");
  EXPECT_ERROR(infer({.bins = 0x7fffffff}, {f32}), invalid,
               "histogram: `bins` is 2147483647; the most is 2147483646. Use fewer.");
  EXPECT_ERROR(infer({.range = {{0, 1}}, .edges = {{0, 1}}}, {f32}), invalid,
               "histogram: `edges` and `range` are both given; give one of them.");
  EXPECT_ERROR(infer({.range = 3}, {f32}), invalid,
               "histogram: `range` has 1 value; it must have 2: the lower and the upper bound.");
  EXPECT_ERROR(infer({.range = {{3, 1}}}, {f32}), invalid,
               "histogram: `range` is [3, 1]; the first bound must not be above the second.");
  EXPECT_ERROR(infer({.range = {{0, 1e300}}}, {f32}), invalid,
               "histogram: `range` is [0, 1e+300]; both bounds must be finite in f32.");
  EXPECT_ERROR(infer({.range = {{0, kNaN}}}, {f64}), invalid,
               "histogram: `range` is [0, nan]; both bounds must be finite in f64.");
  EXPECT_ERROR(infer({.bins = 10, .range = {{0x1p24, 0x1p24 + 2}}}, {f32}), invalid,
               "histogram: `bins` is 10, but f32 has not as many numbers from 16777216 to "
               "16777218; use fewer bins or a wider "
               "`range`.");
  EXPECT_ERROR(infer({.edges = 1}, {f32}), invalid,
               "histogram: `edges` has 1 value; it must have at least 2.");
  EXPECT_ERROR(infer({.edges = {{0, 2, 1}}}, {f32}), invalid,
               "histogram: `edges` falls from 2 to 1 at index 2; edges must ascend.");
  EXPECT_ERROR(infer({.edges = {{0, kNaN}}}, {f32}), invalid,
               "histogram: `edges` has a NaN at index 1; edges are numbers.");
  EXPECT_ERROR(
      infer({.bins = 64, .edges = {{0, 1, 2}}}, {f32}), invalid,
      "histogram: `bins` is 64, but `edges` has 3 values, which make 2 bins; leave `bins` out.");
  EXPECT_ERROR(infer({.axes = {{1}}}, {f32}), invalid,
               "histogram: `axes` names axis 1, but `x` has shape (4,); its axes are -1 to 0.");
  EXPECT_ERROR(
      infer({.axes = std::vector<std::int64_t>{}}, {{Dtype::f32, {1, 1, 1, 1, 1, 1, 1, 1}}}),
      invalid,
      "histogram: one for each of 8 axes of `x` with shape (1, 1, 1, 1, 1, 1, 1, 1) gives rank 9; "
      "the most is 8.");
}

}  // namespace
}  // namespace forebay
