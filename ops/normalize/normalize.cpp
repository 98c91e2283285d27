#include <forebay/ops/normalize/normalize.h>

#include <array>
#include <bit>
#include <cmath>

#include <forebay/array/require.h>
#include <forebay/ops/checks.h>
#include <forebay/ops/normalize/statistics.h>

namespace forebay {
namespace {

constexpr std::array<std::string_view, 3> kEpsilonPlaces = {"variance", "std", "floor"};
constexpr std::array<std::string_view, 3> kZeroStds = {"divide", "zero", "error"};

/// "axis 1", "axes (1, 3)".
std::string axes_text(AxisSet axes) {
  Dims list;
  for (int axis = 0; axis < kMaxRank; ++axis) {
    if (has_axis(axes, axis)) list.push_back(axis);
  }
  return list.rank == 1 ? fmt::format("axis {}", list[0]) : "axes " + to_string(list);
}

void check_constant(std::string_view name, const Reals& reals, const Normalize& settings,
                    const Dims& shape) {
  const std::size_t given = reals.values.size();
  FOREBAY_REQUIRE(given > 0, invalid,
                  "normalize: `{}` is empty; give at least one value, or leave it out.", name);
  for (const double value : reals.values) {
    FOREBAY_REQUIRE(std::isfinite(value), invalid, "normalize: `{}` is {}; it must be finite.",
                    name, value);
  }
  if (given == 1) return;
  FOREBAY_REQUIRE(settings.axes || settings.layout != Layout::none, invalid,
                  "normalize: `{}` has {} values; say which axis they belong to with `layout` or "
                  "`axes`, or give one value.",
                  name, given);
  const AxisSet axes = normalize_detail::constant_axes(settings, shape);
  const std::int64_t wanted = count_of(kept_shape(shape, ~axes));
  FOREBAY_REQUIRE(
      static_cast<std::int64_t>(given) == wanted, invalid,
      "normalize: `{}` has {} values, but `x` of shape {} has {} along {}; give that many or one.",
      name, given, to_string(shape), wanted, axes == 0 ? "no axis" : axes_text(axes));
}

std::vector<ArraySpec> infer(const Normalize& settings, std::span<const ArraySpec> inputs) {
  const ArraySpec& x = inputs[0];
  check_dtype("normalize", "x", x.dtype, kReals);
  const Dtype output = float_result("normalize", x.dtype, settings.dtype);
  const AxisSet reduced = normalize_detail::statistics_axes(settings, x.shape);
  if (settings.mean) check_constant("mean", *settings.mean, settings, x.shape);
  if (settings.std) check_constant("std", *settings.std, settings, x.shape);
  if (!settings.mean || !settings.std) {
    FOREBAY_REQUIRE(reduced != 0 || x.shape.rank == 0, invalid,
                    "normalize: no axis of `x` with shape {} is left to compute statistics over; "
                    "name some in `axes`.",
                    to_string(x.shape));
  }
  if (settings.zero_std == ZeroStd::error) {
    FOREBAY_REQUIRE(settings.std, invalid,
                    "normalize: `zero_std` is error, which needs a constant `std`; use divide or "
                    "zero for a computed one.");
    for (const double value : settings.std->values) {
      FOREBAY_REQUIRE(
          normalize_detail::divisor_of_std(value, settings.epsilon, settings.epsilon_place) != 0,
          invalid,
          "normalize: `std` has a 0, and `zero_std` is error; give a larger std or an `epsilon`.");
    }
  }
  return {{output, x.shape}};
}

/// A constant for one value, a table that broadcasts against x for several. In `work`, rounded
/// once.
expr::Expr constant(const std::vector<double>& values, Dtype work, AxisSet axes,
                    const Dims& shape) {
  const bool narrow = work == Dtype::f32;
  if (values.size() == 1) {
    return expr::Expr::constant(narrow ? double{static_cast<float>(values[0])} : values[0], work);
  }
  Dims table = shape;
  for (int axis = 0; axis < shape.rank; ++axis) {
    if (!has_axis(axes, axis)) table[axis] = 1;
  }
  return expr::Expr::array(
      narrow ? Array::from(table, std::vector<float>(values.begin(), values.end()))
             : Array::from(table, values));
}

std::vector<expr::Expr> lower(const Normalize& settings, std::span<const expr::Expr> inputs,
                              Materialise&) {
  if (!settings.mean || !settings.std) return {};
  const expr::Expr& x = inputs[0];
  const Dtype output = float_result("normalize", x.dtype(), settings.dtype);
  const Dtype work = work_type(output);
  const AxisSet axes = normalize_detail::constant_axes(settings, x.shape());

  std::vector<double> divisors = settings.std->values;
  bool has_zero = false;
  for (double& d : divisors) {
    d = normalize_detail::divisor_of_std(d, settings.epsilon, settings.epsilon_place);
    has_zero |= work == Dtype::f32 ? static_cast<float>(d) == 0 : d == 0;
  }
  const expr::Expr d = constant(divisors, work, axes, x.shape());
  expr::Expr result =
      (expr::cast(x, work) - constant(settings.mean->values, work, axes, x.shape())) / d;
  if (has_zero && settings.zero_std == ZeroStd::zero) {
    const expr::Expr zero = expr::Expr::constant(0.0, work);
    result = expr::select(expr::binary(expr::Opcode::eq, d, zero), zero, result);
  }
  return {expr::cast(result, output)};
}

bool mixes_samples(const void* raw, std::span<const ArraySpec> inputs) {
  const auto& settings = *static_cast<const Normalize*>(raw);
  return (!settings.mean || !settings.std) &&
         has_axis(normalize_detail::statistics_axes(settings, inputs[0].shape), 0);
}

/// With statistics; with constants there is no body.
Fusion fuses(const void* raw, const Problem&, DeviceKind) {
  const auto& settings = *static_cast<const Normalize*>(raw);
  const bool has_body = !settings.mean || !settings.std;
  return {.prologue = has_body, .epilogue = has_body};
}

}  // namespace

std::span<const std::string_view> names_of(EpsilonPlace) { return kEpsilonPlaces; }
std::span<const std::string_view> names_of(ZeroStd) { return kZeroStds; }

void Normalize::fields(FieldVisitor& v) {
  v.on({.name = "mean",
        .doc = "Subtracted, in units of x: one value or one per channel. Left out: the mean of "
               "each slice."},
       mean);
  v.on({.name = "std",
        .doc = "Divided by, in units of x: one value or one per channel. Left out: the standard "
               "deviation of each slice.",
        .alias = "stddev",
        .min = 0},
       std);
  v.on({.name = "axes",
        .doc = "Axes that the statistics run over, as NumPy counts them.",
        .alias = "axis"},
       axes);
  v.on({.name = "layout",
        .doc = "What the axes mean; statistics and constants are then per channel."},
       layout);
  v.on({.name = "per_sample", .doc = "Statistics for each index of axis 0 separately."},
       per_sample);
  v.on({.name = "ddof",
        .doc = "The squares are divided by n - ddof; 1 gives the sample's standard deviation.",
        .min = 0},
       ddof);
  v.on({.name = "epsilon",
        .doc = "Keeps the divisor from 0: in squared units of x where it is added to the variance, "
               "else in units of x.",
        .alias = "eps",
        .min = 0},
       epsilon);
  v.on({.name = "epsilon_place",
        .doc = "sqrt(var + epsilon), std + epsilon, or the larger of std and epsilon (floor)."},
       epsilon_place);
  v.on({.name = "zero_std",
        .doc = "What a divisor of 0 gives: IEEE division, 0, or an error for constants."},
       zero_std);
  v.on({.name = "dtype", .doc = "Of the output, a float. Left out: that of a float x, else f32."},
       dtype);
}

OpDef normalize_def() {
  OpDef def = define_op<Normalize, infer, lower>({
      .name = "normalize",
      .summary =
          "Subtracts a mean and divides by a standard deviation: constants, or computed over axes.",
      .alias = "standardize",
      .example = "{op: normalize, per_sample: true, epsilon: 1.0e-5}",
  });
  def.mixes_samples = mixes_samples;
  def.fuses = fuses;
  return def;
}

namespace normalize_detail {

AxisSet statistics_axes(const Normalize& settings, const Dims& shape) {
  return reduced_axes("normalize", settings.axes, settings.layout, settings.per_sample, shape);
}

AxisSet constant_axes(const Normalize& settings, const Dims& shape) {
  if (!settings.axes && settings.layout == Layout::none) return 0;
  const AxisSet kept = all_axes(shape.rank) &
                       ~reduced_axes("normalize", settings.axes, settings.layout, false, shape);
  return kept == 1 ? kept : kept & ~AxisSet{1};
}

double divisor(double variance, double epsilon, EpsilonPlace place) {
  if (place == EpsilonPlace::variance) return std::sqrt(variance + epsilon);
  const double std = std::sqrt(variance);
  if (place == EpsilonPlace::std) return std + epsilon;
  return std < epsilon ? epsilon : std;
}

double divisor_of_std(double std, double epsilon, EpsilonPlace place) {
  if (place == EpsilonPlace::variance && epsilon > 0) return std::sqrt(std * std + epsilon);
  if (place == EpsilonPlace::std) return std + epsilon;
  return place == EpsilonPlace::floor && std < epsilon ? epsilon : std;
}

NarrowScale narrow(const Scale& scale) {
  NarrowScale result;
  result.high = static_cast<float>(scale.mean);
  result.low = static_cast<float>(scale.mean - result.high);
  result.divisor = static_cast<float>(scale.divisor);
  result.fits =
      std::fabs(scale.mean) < 0x1p100 && scale.divisor > 0x1p-100 && scale.divisor < 0x1p100;
  return result;
}

}  // namespace normalize_detail
}  // namespace forebay
