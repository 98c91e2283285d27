#include <forebay/ops/expr/numpy.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include <forebay/array/require.h>
#include <forebay/ops/expr/opcodes.h>

namespace forebay::expr {
namespace {

Dtype signed_of(std::size_t bytes) {
  return bytes == 1 ? Dtype::i8 : bytes == 2 ? Dtype::i16 : bytes == 4 ? Dtype::i32 : Dtype::i64;
}

Dtype promote_integers(Dtype a, Dtype b) {
  if (is_signed(a) == is_signed(b)) return size_of(a) >= size_of(b) ? a : b;
  if (is_signed(b)) std::swap(a, b);  // a signed, b unsigned
  if (b == Dtype::u64) return Dtype::f64;
  return signed_of(std::max(size_of(a), 2 * size_of(b)));
}

/// The float that holds the integers of dtype `integer` as well as `other`.
Dtype promote_to_float(Dtype integer, Dtype other) {
  if (size_of(integer) == 1) return other;
  if (size_of(integer) == 2) return size_of(other) == 2 ? Dtype::f32 : other;
  return Dtype::f64;
}

}  // namespace

Dtype promote(Dtype a, Dtype b) {
  if (a == b || b == Dtype::boolean) return a;
  if (a == Dtype::boolean) return b;
  if (is_complex(a) || is_complex(b)) return complex_of(promote(real_of(a), real_of(b)));
  if (is_integer(a) && is_integer(b)) return promote_integers(a, b);
  if (is_integer(a)) return promote_to_float(a, b);
  if (is_integer(b)) return promote_to_float(b, a);
  if (size_of(a) == 2 && size_of(b) == 2) return Dtype::f32;  // f16 and bf16
  return size_of(a) >= size_of(b) ? a : b;
}

}  // namespace forebay::expr

namespace forebay::expr::numpy {
namespace {

bool is_comparison(Opcode opcode) {
  return opcode == Opcode::lt || opcode == Opcode::le || opcode == Opcode::eq ||
         opcode == Opcode::ne;
}
bool is_math(Opcode opcode) {
  return opcode >= Opcode::sqrt && opcode <= Opcode::tanh;  // of floats only
}

bool is_rounding(Opcode opcode) { return opcode >= Opcode::floor && opcode <= Opcode::round_even; }
/// Of a dtype that the primitive does not support, the language gives the operand itself, or false.
bool passes_any(Opcode opcode) {
  return opcode == Opcode::real || opcode == Opcode::conj || opcode == Opcode::is_nan ||
         opcode == Opcode::abs;
}

/// As the user wrote it.
std::string_view symbol(Opcode opcode) {
  switch (opcode) {
    case Opcode::neg:
    case Opcode::sub:
      return "-";
    case Opcode::add:
      return "+";
    case Opcode::mul:
      return "*";
    case Opcode::div:
      return "/";
    case Opcode::pow:
      return "**";
    case Opcode::lt:
      return "<";
    case Opcode::le:
      return "<=";
    case Opcode::eq:
      return "==";
    case Opcode::ne:
      return "!=";
    case Opcode::logical_and:
      return "&";
    case Opcode::logical_or:
      return "|";
    case Opcode::logical_not:
      return "~";
    case Opcode::round_even:
      return "round";
    case Opcode::is_nan:
      return "isnan";
    case Opcode::select:
      return "where";
    default:
      return info(opcode).name;
  }
}

std::string describe(const Operand& a) {
  if (a.is_number()) return to_string(a.number());
  return fmt::format("{} {}", name_of(a.expr().dtype()), to_string(a.expr().shape()));
}

// Numbers among themselves.

double fold_float(Opcode opcode, double x) {
  switch (opcode) {
    case Opcode::neg:
      return -x;
    case Opcode::abs:
      return std::fabs(x);
    case Opcode::sqrt:
      return std::sqrt(x);
    case Opcode::exp:
      return std::exp(x);
    case Opcode::expm1:
      return std::expm1(x);
    case Opcode::log:
      return std::log(x);
    case Opcode::log1p:
      return std::log1p(x);
    case Opcode::log2:
      return std::log2(x);
    case Opcode::log10:
      return std::log10(x);
    case Opcode::sin:
      return std::sin(x);
    case Opcode::cos:
      return std::cos(x);
    case Opcode::tanh:
      return std::tanh(x);
    case Opcode::floor:
      return std::floor(x);
    case Opcode::ceil:
      return std::ceil(x);
    case Opcode::round_even:
      return std::nearbyint(x);
    case Opcode::sign:
      return x != x ? x : (x > 0) - (x < 0);
    case Opcode::imag:
      return 0;
    case Opcode::norm:
      return x * x;
    default:  // real, conj
      return x;
  }
}

Operand fold(Opcode opcode, const Number& a) {
  if (opcode == Opcode::neg && a.kind() == Number::Kind::i64 && a.i64() != INT64_MIN)
    return Number(-a.i64());
  if (opcode == Opcode::neg && a == Number(std::uint64_t{1} << 63)) return Number(INT64_MIN);
  if (opcode == Opcode::is_nan || opcode == Opcode::logical_not)
    return unary(opcode, Expr::constant(a, Dtype::f64));
  const double value = fold_float(opcode, a.f64());
  if (!a.is_integer() || is_math(opcode)) return Number(value);
  if (a.kind() == Number::Kind::u64 && (value == a.f64())) return a;
  const bool whole = std::fabs(value) < 0x1p53 && a.kind() == Number::Kind::i64;
  return whole ? Number(static_cast<std::int64_t>(value)) : Number(value);
}

std::optional<Number> fold_integers(Opcode opcode, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (opcode == Opcode::add && !__builtin_add_overflow(a, b, &result)) return result;
  if (opcode == Opcode::sub && !__builtin_sub_overflow(a, b, &result)) return result;
  if (opcode == Opcode::mul && !__builtin_mul_overflow(a, b, &result)) return result;
  if (opcode == Opcode::minimum) return std::min(a, b);
  if (opcode == Opcode::maximum) return std::max(a, b);
  if (opcode == Opcode::pow && b >= 0) {
    result = 1;
    for (std::int64_t i = 0; i < b; ++i) {
      if ((a == 0 || a == 1 || a == -1) && i > 1) return a == -1 && b % 2 == 0 ? 1 : a;
      if (__builtin_mul_overflow(result, a, &result)) return std::nullopt;
    }
    return result;
  }
  return std::nullopt;
}

Operand fold(Opcode opcode, const Number& a, const Number& b) {
  if (a.kind() == Number::Kind::i64 && b.kind() == Number::Kind::i64) {
    if (const auto whole = fold_integers(opcode, a.i64(), b.i64())) return *whole;
  }
  const double x = a.f64(), y = b.f64();
  switch (opcode) {
    case Opcode::add:
      return Number(x + y);
    case Opcode::sub:
      return Number(x - y);
    case Opcode::mul:
      return Number(x * y);
    case Opcode::div:
      return Number(x / y);
    case Opcode::pow:
      return Number(std::pow(x, y));
    case Opcode::minimum:
      return x < y || x != x ? a : b;
    case Opcode::maximum:
      return x > y || x != x ? a : b;
    default:  // comparisons
      return binary(opcode, Expr::constant(x, Dtype::f64), Expr::constant(y, Dtype::f64));
  }
}

// A number that meets an array.

bool fits(const Number& number, Dtype dtype) {
  return Expr::constant(number, dtype).node()->value == number;
}

Dtype dtype_with_number(Opcode opcode, Dtype array, const Number& number) {
  if (is_float(array) || is_complex(array)) return array;
  if (!number.is_integer()) return is_comparison(opcode) ? Dtype::f64 : Dtype::f32;
  return array == Dtype::boolean ? Dtype::i64 : array;
}

/// The number as an element of `dtype`. Integers that cannot hold it saturate where only its order
/// counts.
Expr constant(Opcode opcode, const Number& number, Dtype dtype) {
  const bool order_only = opcode == Opcode::minimum || opcode == Opcode::maximum;
  FOREBAY_REQUIRE(
      !is_integer(dtype) || order_only || fits(number, dtype), invalid,
      "`{}`: {} does not fit {}, the dtype of what it meets; cast that to a wider type, or "
      "write {}.0.",
      symbol(opcode), to_string(number), name_of(dtype), to_string(number));
  return Expr::constant(number, dtype);
}

/// Both operands in the dtype that the operation runs in.
std::pair<Expr, Expr> common(Opcode opcode, const Operand& a, const Operand& b) {
  Dtype dtype{};
  if (a.is_number() && b.is_number())
    dtype = a.number().is_integer() && b.number().is_integer() ? Dtype::i64 : Dtype::f32;
  else if (a.is_number())
    dtype = dtype_with_number(opcode, b.expr().dtype(), a.number());
  else if (b.is_number())
    dtype = dtype_with_number(opcode, a.expr().dtype(), b.number());
  else
    dtype = promote(a.expr().dtype(), b.expr().dtype());
  const bool whole = is_integer(dtype) || dtype == Dtype::boolean;
  if (opcode == Opcode::div && whole) dtype = Dtype::f32;
  const auto element = [&](const Operand& x) {
    return x.is_number() ? constant(opcode, x.number(), dtype) : cast(x.expr(), dtype);
  };
  return {element(a), element(b)};
}

void check_broadcast(Opcode opcode, const Operand& a, const Operand& b) {
  if (a.is_number() || b.is_number()) return;
  try {
    broadcast_shapes(a.expr().shape(), b.expr().shape());
  } catch (const Error& error) {
    fail(error.kind(), "`{}` of {} and {}: {}", symbol(opcode), describe(a), describe(b),
         error.what());
  }
}

/// What a comparison of integers with a whole number that their type cannot hold gives everywhere.
std::optional<Operand> settled_comparison(Opcode opcode, const Operand& a, const Operand& b) {
  if (!is_comparison(opcode) || a.is_number() == b.is_number()) return std::nullopt;
  const Expr& array = a.is_number() ? b.expr() : a.expr();
  const Number& number = a.is_number() ? a.number() : b.number();
  if (!is_integer(array.dtype()) || !number.is_integer() || fits(number, array.dtype()))
    return std::nullopt;
  const bool above = number.f64() > 0;
  const bool value = opcode == Opcode::ne || (opcode != Opcode::eq && above != a.is_number());
  return broadcast_to(Expr::constant(value ? 1 : 0, Dtype::boolean), array.shape());
}

bool is_bool(const Operand& a) { return !a.is_number() && a.expr().dtype() == Dtype::boolean; }

Operand logical(Opcode opcode, const Operand& a, const Operand& b) {
  FOREBAY_REQUIRE(is_bool(a) && is_bool(b), unsupported,
                  "`{}` of {} and {}: it takes bools. Put comparisons in parentheses: (x > 0) {} "
                  "(x < 1).",
                  symbol(opcode), describe(a), describe(b), symbol(opcode));
  return expr::binary(opcode, a.expr(), b.expr());
}

/// x ** exponent where a rule of its own applies.
std::optional<Operand> special_power(const Operand& x, const Operand& exponent) {
  if (x.is_number() || !exponent.is_number()) return std::nullopt;
  const Number& power = exponent.number();
  if (power.f64() == 2) return binary(Opcode::mul, x, x);
  FOREBAY_REQUIRE(!is_integer(x.expr().dtype()) || !power.is_integer() || power.f64() >= 0, invalid,
                  "`**` of {} and {}: integers to a negative power are not whole; cast them to a "
                  "float, or write {}.0.",
                  describe(x), to_string(power), to_string(power));
  return std::nullopt;
}

}  // namespace

Operand unary(Opcode opcode, const Operand& a) {
  if (a.is_number()) return fold(opcode, a.number());
  const Expr& x = a.expr();
  const bool complex = is_complex(x.dtype());
  if (!complex && opcode == Opcode::norm) return binary(Opcode::mul, x, x);
  if (!complex && opcode == Opcode::imag)
    return broadcast_to(Expr::constant(0, x.dtype()), x.shape());
  const bool exact = is_float(x.dtype()) || complex || !is_math(opcode);
  const Expr operand = exact ? x : cast(x, Dtype::f32);
  FOREBAY_REQUIRE(passes_any(opcode) || (is_integer(x.dtype()) && is_rounding(opcode)) ||
                      info(opcode).supported.has(operand.dtype()),
                  unsupported, "`{}` of {}: it takes {}.", symbol(opcode), describe(a),
                  to_string(info(opcode).supported));
  return expr::unary(opcode, operand);
}

Operand binary(Opcode opcode, const Operand& a, const Operand& b) {
  if (a.is_number() && b.is_number()) return fold(opcode, a.number(), b.number());
  check_broadcast(opcode, a, b);
  if (opcode == Opcode::logical_and || opcode == Opcode::logical_or) return logical(opcode, a, b);
  if (auto settled = settled_comparison(opcode, a, b)) return *settled;
  if (opcode == Opcode::pow) {
    if (auto power = special_power(a, b)) return *power;
  }
  const auto [x, y] = common(opcode, a, b);
  if (x.dtype() == Dtype::boolean && opcode == Opcode::add)
    return expr::binary(Opcode::logical_or, x, y);
  if (x.dtype() == Dtype::boolean && opcode == Opcode::mul)
    return expr::binary(Opcode::logical_and, x, y);
  FOREBAY_REQUIRE(info(opcode).supported.has(x.dtype()), unsupported,
                  "`{}` of {} and {}: it takes {}.", symbol(opcode), describe(a), describe(b),
                  to_string(info(opcode).supported));
  return expr::binary(opcode, x, y);
}

Operand clip(const Operand& x, const Operand& low, const Operand& high) {
  return binary(Opcode::minimum, binary(Opcode::maximum, x, low), high);
}

Operand where(const Operand& condition, const Operand& a, const Operand& b) {
  check_broadcast(Opcode::select, a, b);
  const auto [x, y] = common(Opcode::select, a, b);
  const Expr truth = condition.is_number() ? Expr::constant(condition.number(), Dtype::boolean)
                                           : cast(condition.expr(), Dtype::boolean);
  check_broadcast(Opcode::select, truth, broadcast_to(x, broadcast_shapes(x.shape(), y.shape())));
  return select(truth, x, y);
}

Operand astype(const Operand& a, Dtype dtype) {
  return a.is_number() ? Expr::constant(a.number(), dtype) : cast(a.expr(), dtype);
}

namespace {

template <Opcode opcode>
Operand one(std::span<const Operand> x) {
  return unary(opcode, x[0]);
}
template <Opcode opcode>
Operand two(std::span<const Operand> x) {
  return binary(opcode, x[0], x[1]);
}
Operand clip_of(std::span<const Operand> x) { return clip(x[0], x[1], x[2]); }
Operand where_of(std::span<const Operand> x) { return where(x[0], x[1], x[2]); }

constexpr Function kFunctions[] = {
    {"abs", 1, one<Opcode::abs>, "of a complex number its magnitude"},
    {"sqrt", 1, one<Opcode::sqrt>, "square root"},
    {"exp", 1, one<Opcode::exp>, "e^x"},
    {"expm1", 1, one<Opcode::expm1>, "e^x - 1"},
    {"log1p", 1, one<Opcode::log1p>, "log(1 + x)"},
    {"log", 1, one<Opcode::log>, "natural logarithm"},
    {"log2", 1, one<Opcode::log2>, "logarithm to base 2"},
    {"log10", 1, one<Opcode::log10>, "logarithm to base 10"},
    {"sin", 1, one<Opcode::sin>, "sine of radians"},
    {"cos", 1, one<Opcode::cos>, "cosine of radians"},
    {"tanh", 1, one<Opcode::tanh>, "hyperbolic tangent"},
    {"floor", 1, one<Opcode::floor>, "down to a whole number"},
    {"ceil", 1, one<Opcode::ceil>, "up to a whole number"},
    {"round", 1, one<Opcode::round_even>, "to the nearest whole number, halves to even"},
    {"sign", 1, one<Opcode::sign>, "-1, 0 or 1"},
    {"isnan", 1, one<Opcode::is_nan>, "whether it is NaN"},
    {"real", 1, one<Opcode::real>, "real part"},
    {"imag", 1, one<Opcode::imag>, "imaginary part"},
    {"conj", 1, one<Opcode::conj>, "complex conjugate"},
    {"norm", 1, one<Opcode::norm>, "squared magnitude, re^2 + im^2"},
    {"minimum", 2, two<Opcode::minimum>, "the smaller; NaN when either is"},
    {"maximum", 2, two<Opcode::maximum>, "the greater; NaN when either is"},
    {"clip", 3, clip_of, "clip(x, low, high) = minimum(maximum(x, low), high)"},
    {"where", 3, where_of, "where(c, a, b): a where c is true, else b"},
};

}  // namespace

std::span<const Function> functions() { return kFunctions; }

}  // namespace forebay::expr::numpy
