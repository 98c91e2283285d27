#include <forebay/ops/histogram/histogram.h>

#include <limits>

#include <forebay/array/require.h>
#include <forebay/ops/checks.h>
#include <forebay/ops/histogram/edges.h>

namespace forebay {
namespace {

using histogram_detail::EdgePlan;

std::vector<ArraySpec> infer(const Histogram& settings, std::span<const ArraySpec> inputs) {
  const ArraySpec& x = inputs[0];
  check_dtype("histogram", "x", x.dtype, kReals);
  const bool weighted = inputs.size() > 1;
  if (weighted) {
    check_dtype("histogram", "weights", inputs[1].dtype, kReals);
    FOREBAY_REQUIRE(inputs[1].shape == x.shape, invalid,
                    "histogram: `weights` has shape {}, but `x` has shape {}; they must be equal.",
                    to_string(inputs[1].shape), to_string(x.shape));
  }
  const Dims kept = kept_shape(x.shape, histogram_detail::counted_axes(settings, x.shape));
  FOREBAY_REQUIRE(
      kept.rank < kMaxRank, invalid,
      "histogram: one for each of {} axes of `x` with shape {} gives rank {}; the most is {}.",
      kept.rank, to_string(x.shape), kept.rank + 1, kMaxRank);
  const EdgePlan plan = histogram_detail::plan_edges(settings, x.dtype);

  Dims hist = kept;
  hist.push_back(plan.bins);
  Dims edges = plan.kind == EdgePlan::Kind::inferred ? kept : Dims{};
  edges.push_back(plan.bins + 1);
  return {{weighted || settings.density ? Dtype::f64 : Dtype::i64, hist},
          {plan.dtype, edges},
          {Dtype::i64, kept}};
}

Fusion fuses(const void*, const Problem&, DeviceKind) { return {.prologue = true}; }

bool mixes_samples(const void* raw, std::span<const ArraySpec> inputs) {
  return has_axis(
      histogram_detail::counted_axes(*static_cast<const Histogram*>(raw), inputs[0].shape), 0);
}

HistogramResult run(const std::vector<Array>& inputs, const Histogram& settings,
                    const Context& context) {
  std::vector<Array> results = run_op(Op::with(find_op("histogram"), settings), inputs, context);
  return {std::move(results[0]), std::move(results[1]), std::move(results[2])};
}

}  // namespace

void Histogram::fields(FieldVisitor& v) {
  v.on({.name = "bins", .doc = "How many bins of equal width.", .min = 1}, bins);
  v.on(
      {.name = "range",
       .doc = "Lower and upper bound of the bins, in units of x. Left out: the range of the data."},
      range);
  v.on({.name = "edges",
        .doc = "The bins' edges themselves, ascending, in units of x.",
        .alias = "bin_edges"},
       edges);
  v.on(
      {.name = "axes",
       .doc = "Axes that are counted over, as NumPy counts them; the others each have a histogram.",
       .alias = "axis"},
      axes);
  v.on({.name = "layout", .doc = "What the axes mean; one histogram per channel."}, layout);
  v.on({.name = "per_sample", .doc = "One histogram for each index of axis 0."}, per_sample);
  v.on({.name = "density", .doc = "Divide by bin width and sum, so that the integral is 1."},
       density);
}

HistogramResult histogram(const Array& x, const Histogram& settings, const Context& context) {
  return run({x}, settings, context);
}
HistogramResult histogram(const Array& x, const Array& weights, const Histogram& settings,
                          const Context& context) {
  return run({x, weights}, settings, context);
}

OpDef histogram_def() {
  OpDef def = define_op<Histogram, infer>({
      .name = "histogram",
      .summary = "Counts the values in each bin, or adds up their weights.",
      .alias = "histc",
      .example = "{op: histogram, bins: 64, range: [0, 200], per_sample: true}",
      .inputs = {"x", "weights"},
      .outputs = {"hist", "edges", "ignored"},
      .optional_inputs = 1,
  });
  def.fuses = fuses;
  def.mixes_samples = mixes_samples;
  return def;
}

namespace histogram_detail {

AxisSet counted_axes(const Histogram& settings, const Dims& shape) {
  return reduced_axes("histogram", settings.axes, settings.layout, settings.per_sample, shape);
}

EdgePlan plan_edges(const Histogram& settings, Dtype x) {
  constexpr std::int64_t kMostBins = 0x7ffffffe;  // bodies number bins and edges in 32 bits
  EdgePlan plan;
  plan.dtype = is_float(x) && x != Dtype::f64 ? Dtype::f32 : Dtype::f64;
  plan.bins = settings.bins;
  const auto rounded = [&](double value) {
    return plan.dtype == Dtype::f32 ? static_cast<double>(static_cast<float>(value)) : value;
  };
  FOREBAY_REQUIRE(!settings.edges || !settings.range, invalid,
                  "histogram: `edges` and `range` are both given; give one of them.");

  if (settings.edges) {
    const std::vector<double>& given = settings.edges->values;
    FOREBAY_REQUIRE(given.size() >= 2, invalid,
                    "histogram: `edges` has {} value{}; it must have at least 2.", given.size(),
                    given.size() == 1 ? "" : "s");
    plan.kind = EdgePlan::Kind::table;
    plan.bins = static_cast<std::int64_t>(given.size()) - 1;
    FOREBAY_REQUIRE(
        settings.bins == Histogram{}.bins || settings.bins == plan.bins, invalid,
        "histogram: `bins` is {}, but `edges` has {} values, which make {} bins; leave `bins` out.",
        settings.bins, given.size(), plan.bins);
    for (std::size_t i = 0; i < given.size(); ++i) {
      FOREBAY_REQUIRE(!std::isnan(given[i]), invalid,
                      "histogram: `edges` has a NaN at index {}; edges are numbers.", i);
      FOREBAY_REQUIRE(i == 0 || given[i - 1] <= given[i], invalid,
                      "histogram: `edges` falls from {} to {} at index {}; edges must ascend.",
                      given[i - 1], given[i], i);
      plan.table.push_back(rounded(given[i]));
    }
    return plan;
  }
  FOREBAY_REQUIRE(plan.bins <= kMostBins, invalid,
                  "histogram: `bins` is {}; the most is {}. Use fewer.", plan.bins, kMostBins);
  if (!settings.range) return plan;

  const std::vector<double>& range = settings.range->values;
  FOREBAY_REQUIRE(
      range.size() == 2, invalid,
      "histogram: `range` has {} value{}; it must have 2: the lower and the upper bound.",
      range.size(), range.size() == 1 ? "" : "s");
  plan.kind = EdgePlan::Kind::range;
  plan.low = rounded(range[0]);
  plan.high = rounded(range[1]);
  const double most = plan.dtype == Dtype::f32 ? double{std::numeric_limits<float>::max()}
                                               : std::numeric_limits<double>::max();
  FOREBAY_REQUIRE(std::fabs(plan.low) <= most && std::fabs(plan.high) <= most, invalid,
                  "histogram: `range` is [{}, {}]; both bounds must be finite in {}.", range[0],
                  range[1], name_of(plan.dtype));
  FOREBAY_REQUIRE(range[0] <= range[1], invalid,
                  "histogram: `range` is [{}, {}]; the first bound must not be above the second.",
                  range[0], range[1]);
  if (plan.dtype == Dtype::f32) {
    auto low = static_cast<float>(plan.low), high = static_cast<float>(plan.high);
    widen(low, high);
    plan.low = low;
    plan.high = high;
  } else {
    widen(plan.low, plan.high);
  }
  const std::vector<double> edges = all_edges(plan);
  FOREBAY_REQUIRE(std::is_sorted(edges.begin(), edges.end(), std::less_equal<>()), invalid,
                  "histogram: `bins` is {}, but {} has not as many numbers from {} to {}; use "
                  "fewer bins or a wider `range`.",
                  plan.bins, name_of(plan.dtype), plan.low, plan.high);
  return plan;
}

std::vector<double> all_edges(const EdgePlan& plan) {
  if (plan.kind == EdgePlan::Kind::table) return plan.table;
  const Range range(plan.low, plan.high, plan.bins);
  std::vector<double> edges;
  for (std::int64_t i = 0; i <= plan.bins; ++i) {
    const double edge = range.edge(plan.bins, i);
    edges.push_back(plan.dtype == Dtype::f32 ? static_cast<double>(static_cast<float>(edge))
                                             : edge);
  }
  return edges;
}

}  // namespace histogram_detail
}  // namespace forebay
