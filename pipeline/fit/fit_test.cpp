#include <forebay/pipeline/fit.h>

#include <algorithm>
#include <cmath>

#include "kit/kit.h"
#include "kit/oracle.h"

#include <forebay/array/require.h>
#include <forebay/pipeline/pipeline.h>

namespace forebay {
namespace {

using Quad = __float128;

/// The finite values as quads, ascending.
std::vector<Quad> finite(const Array& x) {
  std::vector<Quad> values;
  dispatch(kit::RealsAndBool{}, x.dtype(), "test", "x", [&]<class T>(Type<T>) {
    for (std::int64_t i = 0; i < x.count(); ++i) {
      const long double value = kit::exact(x.as<T>()[i]);
      if (std::isfinite(value)) values.push_back(static_cast<Quad>(value));
    }
  });
  std::sort(values.begin(), values.end());
  return values;
}

/// Half the distance between doubles at `value`, and a bit.
Quad half_ulp(double value) {
  return static_cast<Quad>(std::nextafter(std::fabs(value), INFINITY) - std::fabs(value)) / 2 *
         (1 + static_cast<Quad>(0x1p-40));
}

/// mean and std against sums in 113 bits.
void expect_moments(const FitStatistics& got, const std::vector<Quad>& values) {
  Quad sum = 0;
  for (const Quad value : values)
    sum += value;
  const auto count = static_cast<Quad>(values.size());
  const Quad mean = sum / count;
  Quad squares = 0;
  for (const Quad value : values)
    squares += (value - mean) * (value - mean);
  const Quad off = static_cast<Quad>(got.mean) - mean;
  EXPECT_LE(static_cast<double>(off < 0 ? -off : off), static_cast<double>(half_ulp(got.mean)));
  const Quad low = got.std - half_ulp(got.std), high = got.std + half_ulp(got.std);
  const Quad variance = squares / count;
  EXPECT_LE(static_cast<double>(low * low), static_cast<double>(variance));
  EXPECT_GE(static_cast<double>(high * high), static_cast<double>(variance));
}

void expect_distribution(const FitStatistics& got, const std::vector<Quad>& values,
                         const std::vector<double>& percentiles) {
  EXPECT_EQ(got.min, static_cast<double>(values.front()));
  EXPECT_EQ(got.max, static_cast<double>(values.back()));
  for (std::size_t i = 0; i < percentiles.size(); ++i) {
    const double place = static_cast<double>(values.size() - 1) * (percentiles[i] / 100);
    const auto rank = static_cast<std::size_t>(place);
    const Quad below = values[rank], above = values[std::min(rank + 1, values.size() - 1)];
    const auto want = static_cast<double>(below + (above - below) * (place - std::floor(place)));
    EXPECT_LE(std::fabs(got.percentiles[i] - want),
              got.percentile_errors[i] + 1e-15 * std::fabs(want))
        << percentiles[i];
  }
  ASSERT_EQ(got.edges.size(), got.counts.size() + 1);
  std::vector<std::int64_t> counts(got.counts.size());
  for (const Quad value : values) {
    std::size_t bin = 0;
    while (bin + 1 < counts.size() && value >= static_cast<Quad>(got.edges[bin + 1]))
      ++bin;
    EXPECT_GE(value, static_cast<Quad>(got.edges[bin]));
    EXPECT_LE(value, static_cast<Quad>(got.edges[bin + 1]));
    ++counts[bin];
  }
  EXPECT_EQ(got.counts, counts);
}

Array dense(const Array& x) { return kit::to_host(x, kit::context(Device::cpu())); }

class FitTest : public kit::DeviceTest {
 protected:
  PipelineBuilder on(const std::vector<std::pair<std::string, Array>>& columns,
                     std::int64_t batch_size = 7) const {
    PipelineBuilder builder;
    builder.source(array_source(columns)).batch_size(batch_size).device(device());
    return builder;
  }
  FitStatistics whole(const Array& x) const {
    return finish(fit(on({{"x", x}}).spec())).fields.at(0).statistics.at(0);
  }
};

DEVICE_TEST(FitTest, FindsTheTrueStatisticsOfEveryDtype) {
  for (const Dtype dtype : kAllDtypes) {
    if (is_complex(dtype)) continue;
    const double low = is_unsigned(dtype) || dtype == Dtype::boolean ? 0 : -90;
    const Array x = kit::random({301, 33}, dtype, 4, low, 110);
    const FitStatistics got = whole(x);
    EXPECT_EQ(got.count, x.count());
    EXPECT_EQ(got.nan + got.inf, 0);
    SCOPED_TRACE(std::string(name_of(dtype)));
    expect_moments(got, finite(x));
    expect_distribution(got, finite(x), FitReportSettings{}.percentiles);
    for (const double error : got.percentile_errors)
      EXPECT_LE(error, size_of(dtype) <= 2 || is_integer(dtype) ? 0 : 110.0 / 128);
  }
}

DEVICE_TEST(FitTest, FindsThemForTheEdgesOfEveryDtype) {
  for (const Dtype dtype : kAllDtypes) {
    if (is_complex(dtype)) continue;
    SCOPED_TRACE(std::string(name_of(dtype)));
    dispatch(kit::RealsAndBool{}, dtype, "test", "x", [&]<class T>(Type<T>) {
      const Array x = kit::array_of(kit::edge_values<T>());
      const FitStatistics got = whole(x);
      const std::vector<Quad> values = finite(x);
      EXPECT_EQ(got.count, x.count());
      EXPECT_EQ(got.count - got.nan - got.inf, static_cast<std::int64_t>(values.size()));
      EXPECT_EQ(got.nan, is_float(dtype) ? 1 : 0);
      EXPECT_EQ(got.inf,
                is_float(dtype) ? x.count() - 1 - static_cast<std::int64_t>(values.size()) : 0);
      EXPECT_EQ(got.min, static_cast<double>(values.front()));
      EXPECT_EQ(got.max, static_cast<double>(values.back()));
      if (dtype != Dtype::f64) expect_moments(got, values);  // whose squares end a quad
    });
  }
}

DEVICE_TEST(FitTest, LosesNothingBetweenHugeAndTinyValues) {
  constexpr double kTiny = 5e-324;
  const FitStatistics got =
      whole(Array::from<double>({6}, {1.5e308, 4 * kTiny, -1.5e308, 8 * kTiny, 1e-300, -1e-300}));
  EXPECT_EQ(got.mean, 2 * kTiny);
  EXPECT_EQ(got.std, static_cast<double>(static_cast<long double>(1.5e308) / std::sqrt(3.0L)));
  const FitStatistics near = whole(Array::from<double>({3}, {1e8, std::nextafter(1e8, 2e8), 1e8}));
  EXPECT_EQ(near.std, static_cast<double>(std::sqrt(2.0L) / 3 * (std::nextafter(1e8, 2e8) - 1e8)));
  EXPECT_EQ(whole(Array::from<float>({4}, {0.1F, 0.1F, 0.1F, 0.1F})).std, 0);
}

DEVICE_TEST(FitTest, CountsWhatIsNotFinite) {
  const float nan = NAN, inf = INFINITY;
  const FitStatistics got = whole(Array::from<float>({7}, {nan, 1, inf, 3, -inf, nan, nan}));
  EXPECT_EQ(got.count, 7);
  EXPECT_EQ(got.nan, 3);
  EXPECT_EQ(got.inf, 2);
  EXPECT_EQ(got.mean, 2);
  EXPECT_EQ(got.std, 1);
  const FitStatistics none = whole(Array::from<float>({2}, {nan, inf}));
  EXPECT_EQ(none.count, 2);
  EXPECT_TRUE(std::isnan(none.mean) && std::isnan(none.std) && std::isnan(none.min));
  EXPECT_TRUE(std::isnan(none.percentiles.at(3)));
  EXPECT_TRUE(none.counts.empty());
}

DEVICE_TEST(FitTest, HasTheSameBitsHoweverThePassIsCut) {
  const Array x = kit::random({400, 3, 5}, Dtype::f32, 1), y = kit::random({400}, Dtype::i64, 2);
  const FitSettings settings{.fields = {"x"}, .channels = 1};
  const auto pass = [&](std::int64_t batch_size, int threads, int part = 0, int parts = 1) {
    Spec spec = on({{"x", x}, {"y", y}}, batch_size).num_threads(threads).clip({.min = -3}).spec();
    spec.shard = {part, parts};
    return fit(spec, settings);
  };
  const std::string want = pass(400, 1).to_json();
  for (const std::int64_t batch_size : {1, 7, 64, 1000}) {
    for (const int threads : {1, 2, 5})
      EXPECT_EQ(pass(batch_size, threads).to_json(), want) << batch_size << ' ' << threads;
  }
  for (const int parts : {2, 3, 7}) {
    std::vector<FitPartial> all;
    for (int part = 0; part < parts; ++part)
      all.push_back(pass(9, 2, part, parts));
    EXPECT_EQ(merge(all).to_json(), want) << parts;
    std::reverse(all.begin(), all.end());
    std::swap(all[0], all[1]);
    EXPECT_EQ(merge(all).to_json(), want) << parts;
  }
}

DEVICE_TEST(FitTest, GoesOnFromAnyStateOfAnEarlierPass) {
  const Array x = kit::random({100, 4}, Dtype::f64, 3);
  const Spec spec = on({{"x", x}}, 8).scale({.factor = 2}).spec();
  std::vector<std::string> states;
  const FitHooks hooks{
      .on_progress = {},
      .on_state = [&](const FitPartial& partial) { states.push_back(partial.to_json()); },
      .state_seconds = 0};
  const std::string want = fit(spec, {}, hooks).to_json();
  ASSERT_EQ(states.size(), 14U);  // of 13 batches and the end
  EXPECT_EQ(states.back(), want);
  for (const std::string& state : states) {
    const FitPartial begun = FitPartial::from_json(state, "state.json");
    EXPECT_EQ(begun.to_json(), state);
    std::int64_t total = 0;
    const FitHooks count{.on_progress = [&](std::int64_t, std::int64_t all) { total = all; }};
    EXPECT_EQ(fit(spec, {}, count, &begun).to_json(), want);
    EXPECT_EQ(total, 100 - begun.samples_done());
  }
}

DEVICE_TEST(FitTest, TakesFieldsBehindTheStages) {
  const Array x = kit::random({50, 6}, Dtype::u8, 4, 0, 255), y = kit::random({50}, Dtype::f32, 5);
  const FitReport report = finish(
      fit(on({{"x", x}, {"y", y}}, 16).scale({.factor = 0.5}, {.outputs = {"half"}}).spec()));
  ASSERT_EQ(report.fields.size(), 3U);
  EXPECT_EQ(report.samples, 50);
  EXPECT_EQ(report.fields[0].name, "x");
  EXPECT_EQ(report.fields[1].name, "y");
  EXPECT_EQ(report.fields[2].name, "half");
  EXPECT_EQ(report.fields[2].dtype, Dtype::f32);
  const FitStatistics &full = report.fields[0].statistics[0],
                      &half = report.fields[2].statistics[0];
  EXPECT_EQ(half.mean, full.mean / 2);
  EXPECT_EQ(half.std, full.std / 2);
  EXPECT_EQ(half.max, full.max / 2);
}

DEVICE_TEST(FitTest, HasStatisticsOfEachChannel) {
  const Array x = kit::random({20, 4, 5, 3}, Dtype::f32, 6);
  for (const int axis : {1, 3, -1}) {
    const FitReport report = finish(fit(on({{"x", x}}).spec(), {.channels = axis}));
    const int at = axis < 0 ? axis + 4 : axis;
    EXPECT_EQ(report.fields[0].shape, Dims{x.shape()[at]});
    for (std::int64_t c = 0; c < x.shape()[at]; ++c) {
      const FitStatistics got = report.fields[0].statistics.at(static_cast<std::size_t>(c));
      const FitStatistics want = whole(dense(x.slice(at, c, c + 1)));
      EXPECT_EQ(got.count, want.count);
      EXPECT_EQ(got.mean, want.mean);
      EXPECT_EQ(got.std, want.std);
      EXPECT_EQ(got.percentiles, want.percentiles);
      EXPECT_EQ(got.edges, want.edges);
      EXPECT_EQ(got.counts, want.counts);
    }
  }
}

DEVICE_TEST(FitTest, KeepsManyChannelsCoarser) {
  const Array x = kit::random({30, 1500}, Dtype::f32, 7, 1, 2);
  const FitReport report = finish(fit(on({{"x", x}}).spec(), {.channels = 1}));
  const FitStatistics& last = report.fields[0].statistics.back();
  const std::vector<Quad> values = finite(dense(x.slice(1, 1499, 1500)));
  expect_moments(last, values);
  expect_distribution(last, values, report.percentiles);
}

DEVICE_TEST(FitTest, TellsValuesApartFarFrom0) {
  // Channels about 1000, 0 and -3e6, and one whose values are all equal.
  constexpr double kAbout[] = {1000, 0, -3e6, 7.3};
  for (const Dtype dtype : {Dtype::f32, Dtype::f64}) {
    const Array noise = kit::random({2000, 4}, Dtype::f64, 8, -1, 1);
    const Array x = kit::generate({2000, 4}, dtype, [&](std::int64_t i) {
      const double spread = i % 4 == 3 ? 0 : 1;
      return kAbout[i % 4] + spread * noise.as<double>()[i];
    });
    Spec spec = on({{"x", x}}, 300).scale({.factor = 1}).spec();
    const FitPartial all = fit(spec, {.channels = 1});
    const FitReport report = finish(all);
    ASSERT_EQ(report.fields.size(), 1U);
    for (std::int64_t c = 0; c < 4; ++c) {
      SCOPED_TRACE(std::string(name_of(dtype)) + " " + std::to_string(c));
      const FitStatistics& got = report.fields[0].statistics[static_cast<std::size_t>(c)];
      const std::vector<Quad> values = finite(dense(x.slice(1, c, c + 1)));
      expect_moments(got, values);
      expect_distribution(got, values, report.percentiles);
      // An f32 of 3e6 has but a quarter behind the point.
      for (const double error : got.percentile_errors)
        EXPECT_LE(error, c == 3 ? 0 : c == 2 && dtype == Dtype::f32 ? 0.25 : 0x1p-6);
      EXPECT_EQ(got.counts.size(), c == 3 ? 1U : c == 2 && dtype == Dtype::f32 ? 8U : 64U);
    }
    std::vector<FitPartial> shards;
    for (int shard = 0; shard < 3; ++shard) {
      spec.shard = {shard, 3};
      shards.push_back(fit(spec, {.channels = 1}));
    }
    EXPECT_EQ(merge(shards).to_json(), all.to_json());
  }
}

DEVICE_TEST(FitTest, LeavesBadSamplesOut) {
  const std::int64_t samples = 200, width = 5;
  Array x = kit::random({samples, width}, Dtype::f32, 10);
  std::vector<std::int64_t> good;
  for (std::int64_t i = 0; i < samples; ++i) {
    const bool bad = i % 19 == 3 || (i > 70 && i < 76);
    if (bad) x.as<float>()[i * width + 2] = NAN;
    if (!bad) good.push_back(i);
  }
  const auto without_title = [](const FitReport& report) {
    const std::string text = to_yaml(report);
    return text.substr(text.find('\n'));
  };
  Spec clean = on({{"x", x}}).scale({.factor = 2}).spec();
  clean.subset = Array::from({static_cast<std::int64_t>(good.size())}, good);
  const std::string want = without_title(finish(fit(clean)));
  for (const ErrorMode mode : {ErrorMode::skip, ErrorMode::replace}) {
    const auto asked = [&](std::int64_t batch_size) {
      return on({{"x", x}}, batch_size)
          .scale({.factor = 2})
          .check({.column = "x", .finite = true})
          .on_error({.mode = mode, .max_share = 0.5})
          .spec();
    };
    for (const std::int64_t batch_size : {1, 7, 64, 1000}) {
      Spec spec = asked(batch_size);
      const FitReport report = finish(fit(spec));
      EXPECT_EQ(without_title(report), want) << batch_size;
      EXPECT_EQ(report.samples, static_cast<std::int64_t>(good.size()));
      EXPECT_EQ(report.bad, samples - report.samples);
      std::vector<FitPartial> parts;
      for (spec.shard = {0, 3}; spec.shard.shard_id < 3; ++spec.shard.shard_id)
        parts.push_back(fit(spec));
      EXPECT_EQ(without_title(finish(merge(parts))), want) << batch_size;
    }
    std::vector<std::string> states;
    const FitHooks hooks{
        .on_progress = {},
        .on_state = [&](const FitPartial& partial) { states.push_back(partial.to_json()); },
        .state_seconds = 0};
    const std::string all = fit(asked(16), {}, hooks).to_json();
    for (const std::string& state : states) {
      const FitPartial begun = FitPartial::from_json(state, "state.json");
      EXPECT_EQ(fit(asked(16), {}, {}, &begun).to_json(), all);
    }
  }
}

DEVICE_TEST(FitTest, EndsAtABadSampleThatOthersHangOn) {
  Array x = kit::random({20, 2}, Dtype::f32, 11);
  x.as<float>()[14] = NAN;
  PipelineBuilder builder = on({{"x", x}});
  builder.check({.column = "x", .finite = true}).on_error({.mode = ErrorMode::skip});
  EXPECT_EQ(finish(fit(builder.spec())).bad, 1);
  builder.normalize({.axes = std::vector<std::int64_t>{0}});
  EXPECT_ERROR(fit(builder.spec()), invalid,
               "source array x, epoch 0, batch 1, sample 7: `x`[0] is nan; it must be finite.");
}

DEVICE_TEST(FitTest, TakesTheSamplesOfASubsetOnce) {
  const Array x = kit::random({40, 3}, Dtype::f32, 9);
  Spec spec = on({{"x", x}}).shuffle(ShuffleMode::full).spec();
  spec.subset = Array::from<std::int64_t>({5}, {10, 11, 12, 13, 14});
  spec.last_batch_policy = LastBatchPolicy::fill;
  const FitReport report = finish(fit(spec));
  EXPECT_EQ(report.samples, 5);
  const FitStatistics want = whole(dense(x.slice(0, 10, 15)));
  EXPECT_EQ(report.fields[0].statistics[0].count, 15);
  EXPECT_EQ(report.fields[0].statistics[0].mean, want.mean);
  EXPECT_EQ(report.fields[0].statistics[0].counts, want.counts);
}

}  // namespace
}  // namespace forebay
