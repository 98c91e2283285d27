#include <forebay/ops/permute/permute.h>

#include <forebay/ops/checks.h>

namespace forebay {

void Permute::fields(FieldVisitor& visitor) {
  visitor.on({.name = "axes",
              .doc = "For each axis of the result the axis of the input; reversed when left out."},
             axes);
}

namespace {

Dims axes_for(const Permute& settings, int rank) {
  Dims axes = dims_of("permute", "axes", settings.axes);
  if (settings.axes.empty()) {
    for (int axis = rank - 1; axis >= 0; --axis)
      axes.push_back(axis);
  }
  return axes;
}

std::vector<ArraySpec> infer(const Permute& settings, std::span<const ArraySpec> inputs) {
  const auto& [dtype, shape] = inputs[0];
  return {
      {dtype, permute(expr::Expr::leaf(0, dtype, shape), axes_for(settings, shape.rank)).shape()}};
}

std::vector<expr::Expr> lower(const Permute& settings, std::span<const expr::Expr> inputs,
                              Materialise&) {
  return {permute(inputs[0], axes_for(settings, inputs[0].shape().rank))};
}

}  // namespace

OpDef permute_def() {
  return define_op<Permute, infer, lower>({
      .name = "permute",
      .summary = "Reorders the axes.",
      .alias = "transpose",
      .example = "{op: permute, axes: [0, 3, 1, 2]}",
  });
}

Array permute(const Array& x, const Permute& settings, const Context& context) {
  return run_single("permute", settings, {x}, context);
}

}  // namespace forebay
