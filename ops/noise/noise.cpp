#include <forebay/ops/noise/noise.h>

#include <array>

#include <forebay/array/require.h>
#include <forebay/ops/checks.h>

namespace forebay {

std::span<const std::string_view> names_of(NoiseKind) {
  static constexpr std::array<std::string_view, 2> kNames = {"gaussian", "uniform"};
  return kNames;
}

void Noise::fields(FieldVisitor& visitor) {
  visitor.on({.name = "distribution", .doc = "What the noise is distributed like."}, distribution);
  visitor.on(
      {.name = "mean", .doc = "The mean of gaussian noise; 0 when left out.", .alias = "loc"},
      mean);
  visitor.on({.name = "std",
              .doc = "The standard deviation of gaussian noise; 1 when left out.",
              .alias = "stddev",
              .min = 0},
             std);
  visitor.on({.name = "low", .doc = "The least uniform noise; 0 when left out."}, low);
  visitor.on({.name = "high", .doc = "What uniform noise stays below; 1 when left out."}, high);
  visitor.on(
      {.name = "dtype",
       .doc = "The float type of the result; as the input (f32 for integers) when left out."},
      dtype);
  visit_stream(visitor, stream);
}

namespace {

constexpr int kDraws = 1;

void check_settings(const Noise& settings) {
  const bool gaussian = settings.distribution == NoiseKind::gaussian;
  const auto unused = [&](std::string_view name, bool given, bool used) {
    FOREBAY_REQUIRE(!given || used, invalid,
                    "noise: `{}` is for {} noise, but `distribution` is {}; leave it out.", name,
                    names_of(NoiseKind())[gaussian ? 1 : 0],
                    names_of(NoiseKind())[gaussian ? 0 : 1]);
  };
  unused("mean", settings.mean.has_value(), gaussian);
  unused("std", settings.std.has_value(), gaussian);
  unused("low", settings.low.has_value(), !gaussian);
  unused("high", settings.high.has_value(), !gaussian);
  const double low = settings.low.value_or(0), high = settings.high.value_or(1);
  FOREBAY_REQUIRE(low <= high, invalid,
                  "noise: `low` is {} and `high` is {}; low must not exceed high.",
                  to_string(Number(low)), to_string(Number(high)));
}

std::vector<ArraySpec> infer(const Noise& settings, std::span<const ArraySpec> inputs) {
  const auto& [dtype, shape] = inputs[0];
  check_dtype("noise", "x", dtype, kReals);
  check_settings(settings);
  const Dtype result = float_result("noise", dtype, settings.dtype);
  check_sample("noise", shape, work_type(dtype, result) == Dtype::f64 ? 2 : 1);
  return {{result, shape}};
}

std::vector<expr::Expr> lower(const Noise& settings, std::span<const expr::Expr> inputs,
                              Materialise&) {
  const expr::Expr& x = inputs[0];
  const Dtype result = float_result("noise", x.dtype(), settings.dtype);
  const Dtype work = work_type(x.dtype(), result);
  const bool gaussian = settings.distribution == NoiseKind::gaussian;
  const double low = settings.low.value_or(0), high = settings.high.value_or(1);
  const double factor = gaussian ? settings.std.value_or(1) : high - low;
  const double offset = gaussian ? settings.mean.value_or(0) : low;

  const Words words(inputs, kDraws, settings.stream);
  expr::Expr value =
      unary(gaussian ? expr::Opcode::normal : expr::Opcode::uniform,
            work == Dtype::f64 ? words.pairs_of_elements(x.shape()) : words.of_elements(x.shape()));
  if (factor != 1) value = value * expr::Expr::constant(factor, work);
  if (offset != 0) value = value + expr::Expr::constant(offset, work);
  return {cast(cast(x, work) + value, result)};
}

}  // namespace

OpDef noise_def() {
  return define_op<Noise, infer, lower>({
      .name = "noise",
      .summary = "Adds gaussian or uniform noise.",
      .alias = "gaussian_noise",
      .example = "{op: noise, std: 0.1}",
      .draws = kDraws,
  });
}

Array noise(const Array& x, const Noise& settings, const Draw& draw, const Context& context) {
  return run_random("noise", settings, x, draw, context);
}

}  // namespace forebay
