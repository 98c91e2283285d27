#include <forebay/ops/exp/exp.h>

#include <forebay/ops/checks.h>

namespace forebay {

void Exp::fields(FieldVisitor& visitor) {
  visitor.on(
      {.name = "dtype",
       .doc = "The float type of the result; as the input (f32 for integers) when left out."},
      dtype);
}

namespace {

std::vector<ArraySpec> infer(const Exp& settings, std::span<const ArraySpec> inputs) {
  check_dtype("exp", "x", inputs[0].dtype, kReals);
  return {{float_result("exp", inputs[0].dtype, settings.dtype), inputs[0].shape}};
}

std::vector<expr::Expr> lower(const Exp& settings, std::span<const expr::Expr> inputs,
                              Materialise&) {
  const expr::Expr& x = inputs[0];
  const Dtype result = float_result("exp", x.dtype(), settings.dtype);
  const expr::Expr value = unary(expr::Opcode::exp, cast(x, work_type(x.dtype(), result)));
  return {cast(value, result)};
}

}  // namespace

OpDef exp_def() {
  return define_op<Exp, infer, lower>({
      .name = "exp",
      .summary = "The exponential.",
      .example = "{op: exp}",
  });
}

Array exp(const Array& x, const Exp& settings, const Context& context) {
  return run_single("exp", settings, {x}, context);
}

}  // namespace forebay
