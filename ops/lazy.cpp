#include <forebay/ops/lazy.h>

#include <forebay/array/require.h>
#include <forebay/ops/expr/opcodes.h>

namespace forebay {
namespace {

using expr::Opcode;
using expr::numpy::Operand;

/// The device of the arrays of both.
std::optional<Device> common_device(const Lazy& a, const Lazy& b) {
  if (!a.device() || !b.device()) return a.device() ? a.device() : b.device();
  FOREBAY_REQUIRE(*a.device() == *b.device(), invalid,
                  "an expression reads arrays on {} and on {}; copy one of them with `copy_to` "
                  "before.",
                  to_string(*a.device()), to_string(*b.device()));
  return a.device();
}

Lazy unary(Opcode opcode, const Lazy& x) {
  return {expr::numpy::unary(opcode, x.operand()), x.device()};
}
Lazy binary(Opcode opcode, const Lazy& a, const Lazy& b) {
  const auto device = common_device(a, b);
  return {expr::numpy::binary(opcode, a.operand(), b.operand()), device};
}

/// The elements that an index map moves.
const expr::Expr& elements(std::string_view function, const Lazy& x) {
  FOREBAY_REQUIRE(!x.operand().is_number(), invalid, "{}: it is a number, not an array.", function);
  return x.operand().expr();
}

}  // namespace

Lazy::Lazy(const Array& array) : operand_(expr::Expr::array(array)), device_(array.device()) {}

Dtype Lazy::dtype() const { return elements("dtype", *this).dtype(); }
Dims Lazy::shape() const { return operand_.is_number() ? Dims{} : operand_.expr().shape(); }

Array eval(const Lazy& x, const Context& context) {
  const expr::Expr& expression = elements("eval", x);
  FOREBAY_REQUIRE(
      !x.device() || *x.device() == context.device(), invalid,
      "eval: the arrays are on {} but the stream on {}; copy them with `copy_to` before.",
      to_string(*x.device()), to_string(context.device()));
  return eval(expression, {}, context);
}

Lazy operator-(const Lazy& x) { return unary(Opcode::neg, x); }
Lazy operator+(const Lazy& a, const Lazy& b) { return binary(Opcode::add, a, b); }
Lazy operator-(const Lazy& a, const Lazy& b) { return binary(Opcode::sub, a, b); }
Lazy operator*(const Lazy& a, const Lazy& b) { return binary(Opcode::mul, a, b); }
Lazy operator/(const Lazy& a, const Lazy& b) { return binary(Opcode::div, a, b); }
Lazy operator<(const Lazy& a, const Lazy& b) { return binary(Opcode::lt, a, b); }
Lazy operator<=(const Lazy& a, const Lazy& b) { return binary(Opcode::le, a, b); }
Lazy operator>(const Lazy& a, const Lazy& b) { return binary(Opcode::lt, b, a); }
Lazy operator>=(const Lazy& a, const Lazy& b) { return binary(Opcode::le, b, a); }
Lazy operator==(const Lazy& a, const Lazy& b) { return binary(Opcode::eq, a, b); }
Lazy operator!=(const Lazy& a, const Lazy& b) { return binary(Opcode::ne, a, b); }
Lazy operator&(const Lazy& a, const Lazy& b) { return binary(Opcode::logical_and, a, b); }
Lazy operator|(const Lazy& a, const Lazy& b) { return binary(Opcode::logical_or, a, b); }
Lazy operator~(const Lazy& x) { return unary(Opcode::logical_not, x); }

Lazy abs(const Lazy& x) { return unary(Opcode::abs, x); }
Lazy sqrt(const Lazy& x) { return unary(Opcode::sqrt, x); }
Lazy exp(const Lazy& x) { return unary(Opcode::exp, x); }
Lazy expm1(const Lazy& x) { return unary(Opcode::expm1, x); }
Lazy log(const Lazy& x) { return unary(Opcode::log, x); }
Lazy log1p(const Lazy& x) { return unary(Opcode::log1p, x); }
Lazy log2(const Lazy& x) { return unary(Opcode::log2, x); }
Lazy log10(const Lazy& x) { return unary(Opcode::log10, x); }
Lazy sin(const Lazy& x) { return unary(Opcode::sin, x); }
Lazy cos(const Lazy& x) { return unary(Opcode::cos, x); }
Lazy tanh(const Lazy& x) { return unary(Opcode::tanh, x); }
Lazy floor(const Lazy& x) { return unary(Opcode::floor, x); }
Lazy ceil(const Lazy& x) { return unary(Opcode::ceil, x); }
Lazy round(const Lazy& x) { return unary(Opcode::round_even, x); }
Lazy sign(const Lazy& x) { return unary(Opcode::sign, x); }
Lazy isnan(const Lazy& x) { return unary(Opcode::is_nan, x); }
Lazy real(const Lazy& x) { return unary(Opcode::real, x); }
Lazy imag(const Lazy& x) { return unary(Opcode::imag, x); }
Lazy conj(const Lazy& x) { return unary(Opcode::conj, x); }
Lazy norm(const Lazy& x) { return unary(Opcode::norm, x); }
Lazy pow(const Lazy& base, const Lazy& exponent) { return binary(Opcode::pow, base, exponent); }
Lazy minimum(const Lazy& a, const Lazy& b) { return binary(Opcode::minimum, a, b); }
Lazy maximum(const Lazy& a, const Lazy& b) { return binary(Opcode::maximum, a, b); }

Lazy clip(const Lazy& x, const Lazy& low, const Lazy& high) {
  return minimum(maximum(x, low), high);
}

Lazy where(const Lazy& condition, const Lazy& a, const Lazy& b) {
  const auto device = common_device(condition, Lazy(a.operand(), common_device(a, b)));
  return {expr::numpy::where(condition.operand(), a.operand(), b.operand()), device};
}

Lazy astype(const Lazy& x, Dtype dtype) {
  return {expr::numpy::astype(x.operand(), dtype), x.device()};
}

Lazy permute(const Lazy& x, const Dims& axes) {
  return {expr::permute(elements("permute", x), axes), x.device()};
}

Lazy slice(const Lazy& x, int axis, std::int64_t start, std::int64_t stop, std::int64_t step) {
  return {expr::slice(elements("slice", x), axis, start, stop, step), x.device()};
}

Lazy broadcast_to(const Lazy& x, const Dims& shape) {
  return {expr::broadcast_to(elements("broadcast_to", x), shape), x.device()};
}

Lazy reshape(const Lazy& x, const Dims& shape) {
  const expr::Expr& old = elements("reshape", x);
  FOREBAY_REQUIRE(can_reshape(old, shape), invalid,
                  "reshape: {} of shape {} do not lie so that shape {} is an index map; `eval` "
                  "them before.",
                  name_of(old.dtype()), to_string(old.shape()), to_string(shape));
  return {expr::reshape(old, shape), x.device()};
}

}  // namespace forebay
