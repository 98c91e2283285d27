#include <forebay/ops/reshape/reshape.h>

#include <forebay/ops/checks.h>

namespace forebay {

void Reshape::fields(FieldVisitor& visitor) {
  visitor.on({.name = "shape",
              .doc = "Extents of the result, the batch axis included; one may be -1.",
              .min = -1},
             shape);
}

namespace {

std::vector<ArraySpec> infer(const Reshape& settings, std::span<const ArraySpec> inputs) {
  const auto& [dtype, shape] = inputs[0];
  return {{dtype, resolve_reshape(count_of(shape), dims_of("reshape", "shape", settings.shape))}};
}

std::vector<expr::Expr> lower(const Reshape& settings, std::span<const expr::Expr> inputs,
                              Materialise& materialise) {
  const Dims shape = dims_of("reshape", "shape", settings.shape);
  if (can_reshape(inputs[0], shape)) return {reshape(inputs[0], shape)};
  return {reshape(materialise(inputs[0]), shape)};
}

}  // namespace

OpDef reshape_def() {
  return define_op<Reshape, infer, lower>({
      .name = "reshape",
      .summary = "The same elements under another shape.",
      .example = "{op: reshape, shape: [-1, 4]}",
  });
}

Array reshape(const Array& x, const Reshape& settings, const Context& context) {
  return run_single("reshape", settings, {x}, context);
}

}  // namespace forebay
