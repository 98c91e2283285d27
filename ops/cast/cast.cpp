#include <forebay/ops/cast/cast.h>

#include <array>

#include <forebay/array/require.h>

namespace forebay {

std::span<const std::string_view> expr::names_of(CastMode) {
  static constexpr std::array<std::string_view, 2> kNames = {"saturate", "wrap"};
  return kNames;
}

void Cast::fields(FieldVisitor& visitor) {
  visitor.on({.name = "dtype", .doc = "The dtype of the result.", .required = true}, dtype);
  visitor.on(
      {.name = "mode", .doc = "What happens to values outside the range of an integer dtype."},
      mode);
}

namespace {

std::vector<ArraySpec> infer(const Cast& settings, std::span<const ArraySpec> inputs) {
  const auto& [dtype, shape] = inputs[0];
  // Building the expression is the check.
  cast(expr::Expr::leaf(0, dtype, shape), settings.dtype, settings.mode);
  return {{settings.dtype, shape}};
}

std::vector<expr::Expr> lower(const Cast& settings, std::span<const expr::Expr> inputs,
                              Materialise&) {
  return {cast(inputs[0], settings.dtype, settings.mode)};
}

}  // namespace

OpDef cast_def() {
  return define_op<Cast, infer, lower>({
      .name = "cast",
      .summary = "Converts the elements to another dtype.",
      .alias = "astype",
      .example = "{op: cast, dtype: f32}",
  });
}

Array cast(const Array& x, const Cast& settings, const Context& context) {
  return run_single("cast", settings, {x}, context);
}

}  // namespace forebay
