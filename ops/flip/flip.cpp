#include <forebay/ops/flip/flip.h>

#include <cstdint>

#include <forebay/ops/checks.h>

namespace forebay {

void Flip::fields(FieldVisitor& visitor) {
  visitor.on({.name = "axes",
              .doc = "The axes that are reversed; axis 0 is the batch.",
              .alias = "axis",
              .min = -kMaxRank,
              .max = kMaxRank - 1,
              .required = true},
             axes);
}

namespace {

std::vector<ArraySpec> infer(const Flip& settings, std::span<const ArraySpec> inputs) {
  axes_of("flip", settings.axes, inputs[0].shape);
  return {inputs[0]};
}

std::vector<expr::Expr> lower(const Flip& settings, std::span<const expr::Expr> inputs,
                              Materialise&) {
  expr::Expr result = inputs[0];
  for (const int axis : axes_of("flip", settings.axes, result.shape()))
    result = expr::slice(result, axis, INT64_MAX, INT64_MIN, -1);
  return {result};
}

}  // namespace

OpDef flip_def() {
  return define_op<Flip, infer, lower>({
      .name = "flip",
      .summary = "Reverses the order of the elements along some axes.",
      .example = "{op: flip, axes: [-1]}",
  });
}

Array flip(const Array& x, const Flip& settings, const Context& context) {
  return run_single("flip", settings, {x}, context);
}

}  // namespace forebay
