#include <forebay/ops/sqrt/sqrt.h>

#include <forebay/ops/checks.h>

namespace forebay {

void Sqrt::fields(FieldVisitor& visitor) {
  visitor.on(
      {.name = "dtype",
       .doc = "The float type of the result; as the input (f32 for integers) when left out."},
      dtype);
}

namespace {

std::vector<ArraySpec> infer(const Sqrt& settings, std::span<const ArraySpec> inputs) {
  check_dtype("sqrt", "x", inputs[0].dtype, kReals);
  return {{float_result("sqrt", inputs[0].dtype, settings.dtype), inputs[0].shape}};
}

std::vector<expr::Expr> lower(const Sqrt& settings, std::span<const expr::Expr> inputs,
                              Materialise&) {
  const expr::Expr& x = inputs[0];
  const Dtype result = float_result("sqrt", x.dtype(), settings.dtype);
  const expr::Expr value = unary(expr::Opcode::sqrt, cast(x, work_type(x.dtype(), result)));
  return {cast(value, result)};
}

}  // namespace

OpDef sqrt_def() {
  return define_op<Sqrt, infer, lower>({
      .name = "sqrt",
      .summary = "The square root.",
      .example = "{op: sqrt}",
  });
}

Array sqrt(const Array& x, const Sqrt& settings, const Context& context) {
  return run_single("sqrt", settings, {x}, context);
}

}  // namespace forebay
