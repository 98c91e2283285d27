#include <forebay/ops/broadcast_to/broadcast_to.h>

#include <forebay/array/require.h>
#include <forebay/ops/checks.h>

namespace forebay {

void BroadcastTo::fields(FieldVisitor& visitor) {
  visitor.on({.name = "shape",
              .doc = "Extents of the result, the batch axis included; -1 keeps that of the input.",
              .min = -1},
             shape);
}

namespace {

Dims target_shape(const BroadcastTo& settings, const Dims& shape) {
  Dims result = dims_of("broadcast_to", "shape", settings.shape);
  const int added = result.rank - shape.rank;
  for (int i = 0; i < result.rank; ++i) {
    if (result[i] != -1) continue;
    FOREBAY_REQUIRE(i >= added, invalid,
                    "broadcast_to: `shape` {} has -1 for axis {}, which `x` of shape {} does not "
                    "have; give its extent.",
                    to_string(result), i, to_string(shape));
    result[i] = shape[i - added];
  }
  bool fits = added >= 0;
  for (int i = 0; fits && i < shape.rank; ++i)
    fits = shape[i] == 1 || shape[i] == result[i + added];
  FOREBAY_REQUIRE(fits, invalid,
                  "broadcast_to: `x` of shape {} does not broadcast to `shape` {}; its extents "
                  "must be 1 or those of the last axes.",
                  to_string(shape), to_string(result));
  return result;
}

std::vector<ArraySpec> infer(const BroadcastTo& settings, std::span<const ArraySpec> inputs) {
  const auto& [dtype, shape] = inputs[0];
  const Dims result = target_shape(settings, shape);
  check_shape(result, dtype);
  return {{dtype, result}};
}

std::vector<expr::Expr> lower(const BroadcastTo& settings, std::span<const expr::Expr> inputs,
                              Materialise&) {
  return {expr::broadcast_to(inputs[0], target_shape(settings, inputs[0].shape()))};
}

}  // namespace

OpDef broadcast_to_def() {
  return define_op<BroadcastTo, infer, lower>({
      .name = "broadcast_to",
      .summary = "Repeats axes of extent 1, and adds axes in front.",
      .alias = "expand",
      .example = "{op: broadcast_to, shape: [2, 3, -1, -1]}",
  });
}

Array broadcast_to(const Array& x, const BroadcastTo& settings, const Context& context) {
  return run_single("broadcast_to", settings, {x}, context);
}

}  // namespace forebay
