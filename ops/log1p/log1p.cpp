#include <forebay/ops/log1p/log1p.h>

#include <forebay/ops/checks.h>

namespace forebay {

void Log1p::fields(FieldVisitor& visitor) {
  visitor.on(
      {.name = "dtype",
       .doc = "The float type of the result; as the input (f32 for integers) when left out."},
      dtype);
}

namespace {

std::vector<ArraySpec> infer(const Log1p& settings, std::span<const ArraySpec> inputs) {
  check_dtype("log1p", "x", inputs[0].dtype, kReals);
  return {{float_result("log1p", inputs[0].dtype, settings.dtype), inputs[0].shape}};
}

std::vector<expr::Expr> lower(const Log1p& settings, std::span<const expr::Expr> inputs,
                              Materialise&) {
  const expr::Expr& x = inputs[0];
  const Dtype result = float_result("log1p", x.dtype(), settings.dtype);
  const expr::Expr value = unary(expr::Opcode::log1p, cast(x, work_type(x.dtype(), result)));
  return {cast(value, result)};
}

}  // namespace

OpDef log1p_def() {
  return define_op<Log1p, infer, lower>({
      .name = "log1p",
      .summary = "The natural logarithm of 1 + x, exact also near 0.",
      .example = "{op: log1p}",
  });
}

Array log1p(const Array& x, const Log1p& settings, const Context& context) {
  return run_single("log1p", settings, {x}, context);
}

}  // namespace forebay
