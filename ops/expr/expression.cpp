#include <forebay/ops/expr/expression.h>

#include <forebay/array/dispatch.h>
#include <forebay/array/require.h>
#include <forebay/ops/expr/convert.h>
#include <forebay/ops/expr/opcodes.h>

namespace forebay::expr {
namespace {

/// The number that an element of `dtype` holds for `value`, so that equal constants are equal
/// nodes.
Number canonical(const Number& value, Dtype dtype) {
  if (is_complex(dtype)) return canonical(value, real_of(dtype));
  Number result;
  using Real = Types<Bool, std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t, std::int8_t,
                     std::int16_t, std::int32_t, std::int64_t, Half, BFloat16, float, double>;
  dispatch(Real{}, dtype, "constant", "value",
           [&]<class T>(Type<T>) { result = Number(load(from_number<T>(value))); });
  return result;
}

Expr node(Opcode opcode, Dtype dtype, const Dims& shape, const Expr& a, const Expr& b = {},
          const Expr& c = {}) {
  auto result = std::make_shared<Node>();
  result->opcode = opcode;
  result->dtype = dtype;
  result->shape = shape;
  result->args[0] = a;
  result->args[1] = b;
  result->args[2] = c;
  return Expr(std::move(result));
}

void check_operand(Opcode opcode, Dtype dtype) {
  FOREBAY_REQUIRE(info(opcode).supported.has(dtype), unsupported,
                  "{}: operand has dtype {}; supported: {}.", info(opcode).name, name_of(dtype),
                  to_string(info(opcode).supported));
}

void check_equal(Opcode opcode, Dtype a, Dtype b) {
  FOREBAY_REQUIRE(a == b, unsupported,
                  "{}: operands have dtypes {} and {}; they must be equal. Cast one of them.",
                  info(opcode).name, name_of(a), name_of(b));
}

bool is_identity(Opcode opcode, Dtype dtype) {
  switch (opcode) {
    case Opcode::abs:
      return is_unsigned(dtype) || dtype == Dtype::boolean;
    case Opcode::floor:
    case Opcode::ceil:
    case Opcode::round_even:
      return is_integer(dtype);
    case Opcode::real:
    case Opcode::conj:
      return !is_complex(dtype);
    default:
      return false;
  }
}

}  // namespace

Expr Expr::leaf(int source, Dtype dtype, const Dims& shape, const Dims& strides) {
  auto result = std::make_shared<Node>();
  result->opcode = Opcode::leaf;
  result->dtype = dtype;
  result->shape = shape;
  result->source = source;
  result->strides = strides;
  return Expr(std::move(result));
}

Expr Expr::leaf(int source, Dtype dtype, const Dims& shape) {
  return leaf(source, dtype, shape, dense_strides(shape));
}

Expr Expr::array(const Array& values) {
  auto result = std::make_shared<Node>();
  result->opcode = Opcode::leaf;
  result->dtype = values.dtype();
  result->shape = values.shape();
  result->table = values;
  result->strides = values.strides();
  return Expr(std::move(result));
}

Expr Expr::index(const Dims& shape) { return leaf(kIndex, Dtype::u64, shape); }

Expr Expr::constant(const Number& value, Dtype dtype) {
  auto result = std::make_shared<Node>();
  result->opcode = Opcode::constant;
  result->dtype = dtype;
  result->value = canonical(value, dtype);
  return Expr(std::move(result));
}

Dtype Expr::dtype() const { return node_->dtype; }
const Dims& Expr::shape() const { return node_->shape; }

Expr unary(Opcode opcode, const Expr& a) {
  if (is_identity(opcode, a.dtype())) return a;
  if (opcode == Opcode::is_nan && !is_float(a.dtype()) && !is_complex(a.dtype())) {
    return broadcast_to(Expr::constant(0, Dtype::boolean), a.shape());
  }
  check_operand(opcode, a.dtype());
  return node(opcode, result_dtype(opcode, a.dtype()), a.shape(), a);
}

Expr binary(Opcode opcode, const Expr& a, const Expr& b) {
  check_equal(opcode, a.dtype(), b.dtype());
  check_operand(opcode, a.dtype());
  const Dims shape = broadcast_shapes(a.shape(), b.shape());
  return node(opcode, result_dtype(opcode, a.dtype()), shape, broadcast_to(a, shape),
              broadcast_to(b, shape));
}

Expr select(const Expr& condition, const Expr& a, const Expr& b) {
  FOREBAY_REQUIRE(condition.dtype() == Dtype::boolean, unsupported,
                  "select: the condition has dtype {}; it must be bool.",
                  name_of(condition.dtype()));
  check_equal(Opcode::select, a.dtype(), b.dtype());
  const Dims shape = broadcast_shapes(condition.shape(), broadcast_shapes(a.shape(), b.shape()));
  return node(Opcode::select, a.dtype(), shape, broadcast_to(condition, shape),
              broadcast_to(a, shape), broadcast_to(b, shape));
}

Expr philox(const Expr& place, const Expr& sequence, const Expr& key) {
  for (const Expr* operand : {&place, &sequence, &key})
    check_operand(Opcode::philox, operand->dtype());
  const Dims shape =
      broadcast_shapes(place.shape(), broadcast_shapes(sequence.shape(), key.shape()));
  return node(Opcode::philox, Dtype::u32, shape, broadcast_to(place, shape),
              broadcast_to(sequence, shape), broadcast_to(key, shape));
}

Expr cast(const Expr& a, Dtype dtype, CastMode mode) {
  const Dtype from = a.dtype();
  if (mode == CastMode::wrap) {
    for (Dtype side : {from, dtype}) {
      FOREBAY_REQUIRE(
          is_integer(side) || side == Dtype::boolean, unsupported,
          "cast: mode `wrap` from {} to {}; it is for integers and bool. Use `saturate`.",
          name_of(from), name_of(dtype));
    }
  }
  if (from == dtype) return a;
  FOREBAY_REQUIRE(!is_complex(from) || is_complex(dtype) || dtype == Dtype::boolean, unsupported,
                  "cast: from {} to {} would drop the imaginary part. Use `abs`, or the real or "
                  "imaginary part.",
                  name_of(from), name_of(dtype));
  return node(mode == CastMode::wrap ? Opcode::cast_wrap : Opcode::cast_saturate, dtype, a.shape(),
              a);
}

}  // namespace forebay::expr
