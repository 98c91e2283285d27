// What is fused before a histogram, and values on and beside its edges.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "kit/kit.h"
#include "oracle_test.h"

#include <forebay/array/require.h>
#include <forebay/ops/body_test.h>
#include <forebay/ops/histogram/histogram.h>

namespace forebay {
namespace {

using expr::Expr;
using histogram_oracle::Counts;
using histogram_oracle::search;

Expr leaf(int source, const Array& x) { return Expr::leaf(source, x.dtype(), x.shape()); }
Expr number(double value, Dtype dtype) { return Expr::constant(value, dtype); }

class FusedHistogram : public kit::DeviceTest {
 protected:
  /// Runs the body with `prologue` before it, on `sources` as they lie: hist, edges, ignored.
  std::vector<Array> run(const Histogram& settings, const std::vector<Expr>& prologue,
                         const std::vector<Array>& sources, int times = 1) {
    const Context context = kit::context(device());
    const Op op = Op::with(find_op("histogram"), settings);
    Problem problem;
    for (const Expr& input : prologue)
      problem.inputs.push_back({input.dtype(), input.shape()});
    problem.outputs = op.infer(problem.inputs);
    problem.prologue = prologue;
    EXPECT_TRUE(op.entry().def.fuses(op.raw_settings(), problem, device().kind).prologue);
    EXPECT_FALSE(op.entry().def.fuses(op.raw_settings(), problem, device().kind).epilogue);
    std::vector<Array> inputs;
    for (const Array& source : sources)
      inputs.push_back(kit::to_device(source, context));
    return results_of(*op.entry().body(device().kind)(op, problem, context), problem, inputs,
                      context, times);
  }

  /// Against the law on what the prologue gives, computed on the CPU.
  void expect_law(const Histogram& settings, const std::set<int>& counted, const Expr& prologue,
                  const std::vector<Array>& sources, int times = 1) {
    const Context context = kit::context(Device::cpu());
    const Array x = kit::to_host(eval(prologue, sources, context), context);
    const auto got = run(settings, {prologue}, sources, times);
    const Counts want = search(x, got[1], counted);
    EXPECT_TRUE(kit::near(got[0], want.hist, 0));
    EXPECT_TRUE(kit::near(got[2], want.ignored, 0));
  }
};

/// Settings for arrays of rank 3, each with the axes that they count over.
std::vector<std::pair<Histogram, std::set<int>>> ways(double low, double high) {
  return {
      {{.bins = 37, .range = {{low, high}}}, {0, 1, 2}},
      {{.bins = 37}, {0, 1, 2}},
      {{.edges = {{low, (low + high) / 3, high}}}, {0, 1, 2}},
      {{.bins = 64, .range = {{low, high}}, .per_sample = true}, {1, 2}},
      {{.bins = 7, .per_sample = true}, {1, 2}},
      {{.bins = 20'000, .range = {{low, high}}}, {0, 1, 2}},
      {{.bins = 20, .range = {{low, high}}, .axes = {{0, 1}}}, {0, 1}},
      {{.bins = 20, .range = {{low, high}}, .axes = {{0, 2}}}, {0, 2}},
      {{.bins = 20, .axes = {{1}}}, {1}},
      {{.bins = 20, .range = {{low, high}}, .axes = {{2}}}, {2}},
  };
}

DEVICE_TEST(FusedHistogram, ReadsWhatIsFusedBeforeIt) {
  for (const Dims& shape : {Dims{3, 5, 41}, Dims{2, 70, 300}}) {
    const Array complex = kit::random(shape, Dtype::c64, 1);
    const Array real = kit::random(shape, Dtype::f32, 2);
    const Array bytes = kit::random(shape, Dtype::u8, 3, 0, 255);
    const Array half = kit::random(shape, Dtype::f16, 4);
    const Dims turned{shape[2], shape[0], shape[1]};
    struct Case {
      const char* what;
      Expr prologue;
      std::vector<Array> sources;
      double low, high;
    };
    const std::vector<Case> cases = {
        {"abs of complex", expr::unary(expr::Opcode::abs, leaf(0, complex)), {complex}, 0, 5},
        {"clip to the bounds",
         expr::minimum(expr::maximum(leaf(0, real), number(-2, Dtype::f32)), number(2, Dtype::f32)),
         {real},
         -2,
         2},
        {"cast from u8", expr::cast(leaf(0, bytes), Dtype::f32), {bytes}, 0, 256},
        {"u8 added", leaf(0, bytes) + number(7, Dtype::u8), {bytes}, 0, 200},
        {"cast to bool", expr::cast(leaf(0, real), Dtype::boolean), {real}, 0, 1},
        {"cast from f16", expr::cast(leaf(0, half), Dtype::f64), {half}, -3, 3},
        {"permuted", expr::permute(leaf(0, real), {2, 0, 1}), {real}, -3, 3},
        {"two sources",
         leaf(0, real) * leaf(1, real),
         {real, kit::random(shape, Dtype::f32, 8)},
         -6,
         9},
        {"flipped, every second",
         expr::slice(leaf(0, real), 2, shape[2] - 1, -1, -2),
         {real},
         -3,
         3},
    };
    for (std::size_t c = 0; c < cases.size(); ++c) {
      const auto& [what, prologue, sources, low, high] = cases[c];
      const auto all = ways(low, high);
      // Every way with the first; a kernel is compiled for each, so the others share them out.
      for (std::size_t way = 0; way < all.size(); ++way) {
        if (c > 0 && (c + way) % 3 != 0) continue;
        const auto& [settings, counted] = all[way];
        SCOPED_TRACE(fmt::format("{} of {}, {} bins, over {} axes", what, to_string(shape),
                                 settings.bins, counted.size()));
        expect_law(settings, counted, prologue, sources);
      }
    }
  }
}

DEVICE_TEST(FusedHistogram, ReadsWeightsThroughWhatIsFusedBeforeThem) {
  const Dims shape{4, 300};
  const Array x = kit::random(shape, Dtype::f32, 1),
              weights = kit::random(shape, Dtype::u8, 2, 0, 9);
  const Context context = kit::context(Device::cpu());
  const Expr doubled = leaf(0, x) + leaf(0, x);
  const Expr halves = expr::cast(leaf(1, weights), Dtype::f32) * number(0.5, Dtype::f32);
  const Array seen = kit::to_host(eval(doubled, {x}, context), context);
  const Array seen_weights = kit::to_host(eval(halves, {x, weights}, context), context);
  const auto got =
      run({.bins = 9, .range = {{-6, 6}}, .per_sample = true}, {doubled, halves}, {x, weights});
  const Counts want = search(seen, got[1], {1}, &seen_weights);
  EXPECT_TRUE(kit::near(got[0], want.hist, 0x1p-50));
  EXPECT_TRUE(kit::near(got[2], want.ignored, 0));
}

DEVICE_TEST(FusedHistogram, IsTheSameEveryTimeThatABodyRuns) {
  const Array x = kit::random({3, 40'000}, Dtype::f32, 1),
              bytes = kit::random({3, 40'000}, Dtype::u8, 1, 0, 255);
  expect_law({.bins = 100, .range = {{-3, 3}}}, {0, 1}, leaf(0, x), {x}, 3);
  expect_law({.bins = 100, .range = {{-3, 3}}, .per_sample = true}, {1}, leaf(0, x), {x}, 3);
  expect_law({.bins = 50'000}, {0, 1}, leaf(0, x), {x}, 3);
  expect_law({.bins = 100, .axes = {{0}}}, {0}, leaf(0, x), {x}, 2);
  expect_law({.bins = 100, .range = {{0, 99}}}, {0, 1}, leaf(0, bytes), {bytes}, 3);
}

/// The edges, both neighbours of each, what lies outside, and numbers between.
template <class E>
std::vector<E> hard_values(const Array& edges) {
  std::vector<E> values;
  constexpr E kInfinity = std::numeric_limits<E>::infinity();
  const auto* at = edges.as<E>();
  for (std::int64_t i = 0; i < edges.count(); ++i) {
    values.insert(values.end(),
                  {at[i], std::nextafter(at[i], -kInfinity), std::nextafter(at[i], kInfinity)});
    if (i > 0) values.push_back(at[i - 1] / 2 + at[i] / 2);
  }
  values.insert(values.end(),
                {kInfinity, -kInfinity, std::numeric_limits<E>::quiet_NaN(), E(0), -E(0),
                 std::numeric_limits<E>::max(), std::numeric_limits<E>::lowest(),
                 std::numeric_limits<E>::denorm_min(), E(-12582912), E(12582912), E(-0x1p52)});
  return values;
}

struct HardCase {
  double low, high;
  std::int64_t bins;
};

template <class E>
void expect_law_of_hard_values(
    FusedHistogram& test, const HardCase& hard,
    const std::function<std::vector<Array>(const Histogram&, const Array&)>& run) {
  (void)test;
  const Histogram settings{.bins = hard.bins, .range = {{hard.low, hard.high}}};
  const Array edges = run(settings, Array::from(Dims{1}, std::vector<E>{0}))[1];
  std::vector<E> values = hard_values<E>(edges);
  for (const std::size_t least :
       {std::size_t{0}, std::size_t{20'000}}) {  // for one block, and for many
    while (values.size() < least)
      values.insert(values.end(), values.begin(),
                    values.begin() + static_cast<std::ptrdiff_t>(std::min(values.size(), least)));
    const Array x = Array::from(Dims{static_cast<std::int64_t>(values.size())}, values);
    const auto got = run(settings, x);
    const Counts want = search(x, got[1], {0});
    EXPECT_TRUE(kit::near(got[0], want.hist, 0));
    EXPECT_TRUE(kit::near(got[2], want.ignored, 0));
  }
}

DEVICE_TEST(FusedHistogram, PutsHardValuesInTheRightBin) {
  const auto run_plain = [&](const Histogram& settings, const Array& x) {
    return run(settings, {leaf(0, x)}, {x});
  };
  const std::vector<HardCase> both = {{0, 1, 1},
                                      {0, 0.99, 64},
                                      {-3, 3, 256},
                                      {0.1, 0.7, 1000},
                                      {1e6, 1e6 + 1, 16},
                                      {-7, 1e-3, 333},
                                      {-1e30, 3e30, 100},
                                      {5, 5, 3},
                                      {0, 1, 100'003},
                                      {-1e-30, 1e-30, 77},
                                      {0x1p24, 0x1p24 + 64, 32}};
  for (const HardCase& hard : both) {
    SCOPED_TRACE(fmt::format("{} bins from {} to {}", hard.bins, hard.low, hard.high));
    expect_law_of_hard_values<float>(*this, hard, run_plain);
    expect_law_of_hard_values<double>(*this, hard, run_plain);
  }
  for (const HardCase& hard : {HardCase{1e-40, 3e-40, 50}, {-3e38, 3e38, 64}, {0, 1.4e-45, 1}}) {
    SCOPED_TRACE(fmt::format("{} bins from {} to {}", hard.bins, hard.low, hard.high));
    expect_law_of_hard_values<float>(*this, hard, run_plain);
  }
  for (const HardCase& hard : {HardCase{1e6, 1e6 + 1, 100'003},
                               {1e-310, 3e-310, 64},
                               {-1.7e308, 1.7e308, 64},
                               {1e15, 1e15 + 2, 16},
                               {0, 5e-324, 1},
                               {1e300, 2e300, 1000}}) {
    SCOPED_TRACE(fmt::format("{} bins from {} to {}", hard.bins, hard.low, hard.high));
    expect_law_of_hard_values<double>(*this, hard, run_plain);
  }
}

DEVICE_TEST(FusedHistogram, PutsHardIntegersInTheRightBin) {
  for (const Dtype dtype :
       {Dtype::i8, Dtype::u8, Dtype::i16, Dtype::i32, Dtype::u32, Dtype::i64, Dtype::u64}) {
    const double low = is_signed(dtype) ? -100 : 0;
    for (const std::int64_t n : {256, 5000}) {
      const Array x = kit::generate(
          {n}, dtype, [&](std::int64_t i) { return low + static_cast<double>(i % 230 - 3); });
      for (const HardCase& hard : {HardCase{low, low + 120, 60},
                                   {low, low + 120, 7},
                                   {low - 0.5, low + 99.5, 100},
                                   {low + 3, low + 90, 1}}) {
        SCOPED_TRACE(fmt::format("{} {}: {} bins from {} to {}", n, name_of(dtype), hard.bins,
                                 hard.low, hard.high));
        expect_law({.bins = hard.bins, .range = {{hard.low, hard.high}}}, {0}, leaf(0, x), {x});
        expect_law({.bins = hard.bins}, {0}, leaf(0, x), {x});
      }
    }
  }
  // Neighbours of edges that f64 does not hold.
  constexpr std::int64_t kBig = std::int64_t{1} << 60;
  std::vector<std::int64_t> wide;
  for (std::int64_t i = 0; i <= 64; ++i)
    wide.insert(wide.end(), {kBig + i * 4096 - 1, kBig + i * 4096, kBig + i * 4096 + 1});
  const Array x = Array::from(Dims{static_cast<std::int64_t>(wide.size())}, wide);
  for (const std::int64_t bins : {1, 64, 128}) {
    expect_law({.bins = bins, .range = {{0x1p60, 0x1p60 + 64 * 4096}}}, {0}, leaf(0, x), {x});
    expect_law({.bins = bins}, {0}, leaf(0, x), {x});
  }
}

DEVICE_TEST(FusedHistogram, CountsEqualValues) {
  for (const double value :
       {0.0, 0.7, -3.0, 3.0, 1e30}) {  // on an edge, between edges, on both bounds, outside
    for (const Dims& shape : {Dims{30'011}, Dims{40, 513}, Dims{7, 9'000}, Dims{9, 20}}) {
      for (const Dtype dtype : {Dtype::f32, Dtype::f64, Dtype::f16}) {
        if (dtype == Dtype::f16 && value > 1e5) continue;
        const Array x = kit::generate(shape, dtype, [&](std::int64_t) { return value; });
        const bool rows = shape.rank == 2;
        const std::set<int> counted = rows ? std::set<int>{1} : std::set<int>{0};
        expect_law({.bins = 256, .range = {{-3, 3}}, .per_sample = rows}, counted, leaf(0, x), {x});
        expect_law({.bins = 1000, .range = {{-3, 3}}, .per_sample = rows}, counted, leaf(0, x),
                   {x});
        expect_law({.bins = 64, .per_sample = rows}, counted, leaf(0, x), {x});
      }
    }
  }
}


}  // namespace
}  // namespace forebay
