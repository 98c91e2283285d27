#include <forebay/ops/abs/abs.h>

namespace forebay {
namespace {

std::vector<ArraySpec> infer(const Abs&, std::span<const ArraySpec> inputs) {
  return {{real_of(inputs[0].dtype), inputs[0].shape}};
}

std::vector<expr::Expr> lower(const Abs&, std::span<const expr::Expr> inputs, Materialise&) {
  return {unary(expr::Opcode::abs, inputs[0])};
}

}  // namespace

OpDef abs_def() {
  return define_op<Abs, infer, lower>({
      .name = "abs",
      .summary = "The absolute value; of a complex number its magnitude.",
      .alias = "absolute",
      .example = "{op: abs}",
  });
}

Array abs(const Array& x, const Abs& settings, const Context& context) {
  return run_single("abs", settings, {x}, context);
}

}  // namespace forebay
