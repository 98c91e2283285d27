#include <forebay/ops/clip/clip.h>

#include <forebay/array/require.h>
#include <forebay/ops/checks.h>

namespace forebay {

void Clip::fields(FieldVisitor& visitor) {
  visitor.on({.name = "min", .doc = "The least value; smaller ones become it.", .alias = "a_min"},
             min);
  visitor.on({.name = "max", .doc = "The greatest value; larger ones become it.", .alias = "a_max"},
             max);
  visitor.on({.name = "dtype", .doc = "The dtype of the result; as the input when left out."},
             dtype);
}

namespace {

std::vector<ArraySpec> infer(const Clip& settings, std::span<const ArraySpec> inputs) {
  const auto& [dtype, shape] = inputs[0];
  check_dtype("clip", "x", dtype, kIntegers | kFloats);
  FOREBAY_REQUIRE(settings.min || settings.max, invalid,
                  "clip: neither `min` nor `max` is given; give one or both.");
  const Dtype result = settings.dtype.value_or(dtype);
  FOREBAY_REQUIRE(is_integer(result) || is_float(result), invalid,
                  "clip: `dtype` is {}; it must be an integer or float type.", name_of(result));
  const auto check_bound = [&](std::string_view name, const std::optional<Number>& bound) {
    FOREBAY_REQUIRE(!bound || bound->is_integer() || is_float(dtype) || is_float(result), invalid,
                    "clip: `{}` is {} but `x` has dtype {}; integers take whole bounds. Write a "
                    "whole number, or name a "
                    "float `dtype`.",
                    name, to_string(*bound), name_of(dtype));
  };
  check_bound("min", settings.min);
  check_bound("max", settings.max);
  return {{result, shape}};
}

std::vector<expr::Expr> lower(const Clip& settings, std::span<const expr::Expr> inputs,
                              Materialise&) {
  const expr::Expr& x = inputs[0];
  const Dtype result = settings.dtype.value_or(x.dtype());
  // Conversions keep the order of numbers, so clipping may happen before or after. Only NaN needs
  // the float side.
  const Dtype work = is_float(x.dtype()) && is_integer(result) ? x.dtype() : result;
  expr::Expr value = cast(x, work);
  if (settings.min) value = maximum(value, expr::Expr::constant(*settings.min, work));
  if (settings.max) value = minimum(value, expr::Expr::constant(*settings.max, work));
  return {cast(value, result)};
}

}  // namespace

OpDef clip_def() {
  return define_op<Clip, infer, lower>({
      .name = "clip",
      .summary = "Limits each element to [min, max].",
      .alias = "clamp",
      .example = "{op: clip, min: -3, max: 3}",
  });
}

Array clip(const Array& x, const Clip& settings, const Context& context) {
  return run_single("clip", settings, {x}, context);
}

}  // namespace forebay
