#include <forebay/ops/log/log.h>

#include <forebay/ops/checks.h>

namespace forebay {

void Log::fields(FieldVisitor& visitor) {
  visitor.on(
      {.name = "dtype",
       .doc = "The float type of the result; as the input (f32 for integers) when left out."},
      dtype);
}

namespace {

std::vector<ArraySpec> infer(const Log& settings, std::span<const ArraySpec> inputs) {
  check_dtype("log", "x", inputs[0].dtype, kReals);
  return {{float_result("log", inputs[0].dtype, settings.dtype), inputs[0].shape}};
}

std::vector<expr::Expr> lower(const Log& settings, std::span<const expr::Expr> inputs,
                              Materialise&) {
  const expr::Expr& x = inputs[0];
  const Dtype result = float_result("log", x.dtype(), settings.dtype);
  const expr::Expr value = unary(expr::Opcode::log, cast(x, work_type(x.dtype(), result)));
  return {cast(value, result)};
}

}  // namespace

OpDef log_def() {
  return define_op<Log, infer, lower>({
      .name = "log",
      .summary = "The natural logarithm.",
      .alias = "ln",
      .example = "{op: log}",
  });
}

Array log(const Array& x, const Log& settings, const Context& context) {
  return run_single("log", settings, {x}, context);
}

}  // namespace forebay
