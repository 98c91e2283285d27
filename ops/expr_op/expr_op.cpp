#include <forebay/ops/expr_op/expr_op.h>

#include <algorithm>

#include <forebay/array/require.h>
#include <forebay/ops/expr_op/formula.h>

namespace forebay {
namespace {

std::string problem(std::string_view text) {
  try {
    expr::Formula{text};
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

std::vector<std::string> names(const void* settings) {
  return expr::Formula(static_cast<const ExprOp*>(settings)->expr).names();
}

std::vector<ArraySpec> infer(const ExprOp& settings, std::span<const ArraySpec> inputs) {
  std::vector<expr::Expr> values;
  for (const ArraySpec& input : inputs)
    values.push_back(expr::Expr::leaf(static_cast<int>(values.size()), input.dtype, input.shape));
  try {
    const expr::Expr result = expr::Formula(settings.expr).evaluate(values);
    return {{result.dtype(), result.shape()}};
  } catch (const Error& error) {
    fail(error.kind(), "expr: {}", error.what());
  }
}

std::vector<expr::Expr> lower(const ExprOp& settings, std::span<const expr::Expr> inputs,
                              Materialise&) {
  return {expr::Formula(settings.expr).evaluate(inputs)};
}

}  // namespace

void ExprOp::fields(FieldVisitor& visitor) {
  visitor.on(
      {.name = "expr",
       .doc =
           "Names of fields (x is also the field before it), numbers, pi, e, inf, nan; + - * / ** "
           "& "
           "| ~ < <= > >= == != with Python's precedence; abs, sqrt, exp, expm1, log1p, log, log2, "
           "log10, sin, cos, tanh, floor, ceil, round, sign, isnan, real, imag, conj, norm (re^2 + "
           "im^2), minimum, maximum, clip(x, low, high), where(c, a, b); casts as f32(x).",
       .required = true,
       .problem = problem},
      expr);
}

OpDef expr_op_def() {
  OpDef def = define_op<ExprOp, infer, lower>({
      .name = "expr",
      .summary = "An expression over fields, element by element.",
      .example = "{op: expr, expr: \"log1p(abs(x) * gain)\"}",
      .inputs = {"x", "gain"},
  });
  def.names_inputs = names;
  return def;
}

Array eval(std::string_view expression, const std::vector<std::pair<std::string, Array>>& fields,
           const Context& context) {
  const Op op = Op::with(find_op("expr"), ExprOp{.expr = std::string(expression)});
  std::vector<Array> inputs;
  for (const std::string& name : op.inputs()) {
    const auto field = std::ranges::find(fields, name, &std::pair<std::string, Array>::first);
    FOREBAY_REQUIRE(field != fields.end(), invalid,
                    "expr: it reads `{}`, which is not among the {} fields given.", name,
                    fields.size());
    inputs.push_back(field->second);
  }
  return run_op(op, inputs, context).front();
}

}  // namespace forebay
