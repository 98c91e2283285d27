#include <forebay/ops/scale/scale.h>

#include <forebay/ops/checks.h>

namespace forebay {

void Scale::fields(FieldVisitor& visitor) {
  visitor.on({.name = "factor", .doc = "What each element is multiplied by."}, factor);
  visitor.on({.name = "offset", .doc = "What is added to the product, in the unit of the result."},
             offset);
  visitor.on(
      {.name = "dtype",
       .doc = "The float type of the result; as the input (f32 for integers) when left out."},
      dtype);
}

namespace {

std::vector<ArraySpec> infer(const Scale& settings, std::span<const ArraySpec> inputs) {
  check_dtype("scale", "x", inputs[0].dtype, kReals);
  return {{float_result("scale", inputs[0].dtype, settings.dtype), inputs[0].shape}};
}

std::vector<expr::Expr> lower(const Scale& settings, std::span<const expr::Expr> inputs,
                              Materialise&) {
  const expr::Expr& x = inputs[0];
  const Dtype result = float_result("scale", x.dtype(), settings.dtype);
  const Dtype work = work_type(x.dtype(), result);
  expr::Expr value = cast(x, work);
  if (settings.factor != 1) value = value * expr::Expr::constant(settings.factor, work);
  if (settings.offset != 0) value = value + expr::Expr::constant(settings.offset, work);
  return {cast(value, result)};
}

}  // namespace

OpDef scale_def() {
  return define_op<Scale, infer, lower>({
      .name = "scale",
      .summary = "Multiplies by a factor and adds an offset.",
      .alias = "rescale",
      .example = "{op: scale, factor: 0.5, offset: -1}",
  });
}

Array scale(const Array& x, const Scale& settings, const Context& context) {
  return run_single("scale", settings, {x}, context);
}

}  // namespace forebay
