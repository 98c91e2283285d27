#include <forebay/ops/expr/cuda_text.h>

#include <cmath>

#include <forebay/array/require.h>
#include <forebay/ops/expr/opcodes.h>

namespace forebay::expr {
namespace {

std::string float_literal(double value, Dtype dtype) {
  const bool wide = dtype == Dtype::f64;
  if (std::isnan(value))
    return wide ? "__longlong_as_double(0x7ff8000000000000)" : "__uint_as_float(0x7fc00000)";
  if (std::isinf(value)) {
    const char* const infinity =
        wide ? "__longlong_as_double(0x7ff0000000000000)" : "__uint_as_float(0x7f800000)";
    return fmt::format("{}{}", value < 0 ? "-" : "", infinity);
  }
  std::string text = wide ? fmt::format("{}", value) : fmt::format("{}", static_cast<float>(value));
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return wide ? text : text + "f";
}

/// `value`, which an element of `dtype` holds exactly, as an expression of that type.
std::string literal(const Number& value, Dtype dtype) {
  const std::string_view type = name_of(dtype);
  if (dtype == Dtype::boolean) return value.f64() != 0 ? "true" : "false";
  if (is_complex(dtype)) {
    const Dtype real = real_of(dtype);
    return fmt::format("{}{{{}, {}}}", type, float_literal(value.f64(), real),
                       float_literal(0, real));
  }
  if (dtype == Dtype::f16 || dtype == Dtype::bf16) {
    return fmt::format("{}({})", type, float_literal(value.f64(), Dtype::f32));
  }
  if (is_float(dtype)) return float_literal(value.f64(), dtype);
  if (value.kind() == Number::Kind::u64) return fmt::format("{}ull", value.u64());
  if (value.i64() == INT64_MIN) return "(-9223372036854775807ll - 1)";
  return fmt::format("{}({}{})", type, value.i64(), size_of(dtype) == 8 ? "ll" : "");
}

/// How an instruction is written in CUDA C++ with operands `a`, `b`, `c`, all of dtype `operand` (c
/// and b for select).
class Writer {
 public:
  Writer(Dtype operand, Dtype result) : operand_(operand), result_(result) {}

  std::string write(Opcode opcode, const std::string& a, const std::string& b,
                    const std::string& c) const {
    switch (opcode) {
      case Opcode::cast_saturate:
        return fmt::format("saturate_cast<{}>({})", name_of(result_), a);
      case Opcode::cast_wrap:
        return fmt::format("wrap_cast<{}>({})", name_of(result_), a);
      case Opcode::neg:
        return is_integer(operand_) ? fmt::format("sub({}(0), {})", name_of(operand_), a)
                                    : rounded(fmt::format("-{}", wide(a)));
      case Opcode::abs:
        if (is_complex(operand_)) return call("abs", a);
        return is_integer(operand_) ? call("absolute", a) : function("fabs", a);
      case Opcode::sqrt:
      case Opcode::exp:
      case Opcode::expm1:
      case Opcode::log:
      case Opcode::log1p:
      case Opcode::log2:
      case Opcode::log10:
      case Opcode::sin:
      case Opcode::cos:
      case Opcode::tanh:
      case Opcode::floor:
      case Opcode::ceil:
        return function(info(opcode).name, a);
      case Opcode::round_even:
        return function("rint", a);
      case Opcode::sign:
        return rounded(call("sign", wide(a)));
      case Opcode::real:
        return fmt::format("{}.re", a);
      case Opcode::imag:
        return fmt::format("{}.im", a);
      case Opcode::norm:
        return call("norm", a);
      case Opcode::conj:
        return call("conj", a);
      case Opcode::add:
        return arithmetic("add", "+", a, b);
      case Opcode::sub:
        return arithmetic("sub", "-", a, b);
      case Opcode::mul:
        return arithmetic("mul", "*", a, b);
      case Opcode::div:
        return arithmetic("floor_divide", "/", a, b);
      case Opcode::pow:
        if (is_integer(operand_)) return call("integer_pow", a, b);
        if (operand_ == Dtype::f64) return call("pow", a, b);
        // powf is off by up to 4 ulp.
        return rounded(fmt::format("f32(pow(f64({}), f64({})))", wide(a), wide(b)));
      case Opcode::minimum:
        return call("minimum", a, b);
      case Opcode::maximum:
        return call("maximum", a, b);
      case Opcode::lt:
        return infix("<", wide(a), wide(b));
      case Opcode::le:
        return infix("<=", wide(a), wide(b));
      case Opcode::eq:
        return infix("==", wide(a), wide(b));
      case Opcode::ne:
        return infix("!=", wide(a), wide(b));
      case Opcode::is_nan:
        return infix("!=", wide(a), wide(a));
      case Opcode::logical_and:
        return infix("&&", a, b);
      case Opcode::logical_or:
        return infix("||", a, b);
      case Opcode::logical_not:
        return fmt::format("!{}", a);
      case Opcode::select:
        return fmt::format("{} ? {} : {}", a, b, c);
      case Opcode::leaf:
      case Opcode::constant:
        break;
    }
    return {};
  }

 private:
  bool is_half() const { return operand_ == Dtype::f16 || operand_ == Dtype::bf16; }
  /// f16 and bf16 compute in f32 and are rounded back after each operation.
  std::string wide(const std::string& a) const { return is_half() ? fmt::format("f32({})", a) : a; }
  std::string rounded(std::string text) const {
    return is_half() ? fmt::format("{}({})", name_of(operand_), text) : std::move(text);
  }
  static std::string call(std::string_view name, const std::string& a) {
    return fmt::format("{}({})", name, a);
  }
  static std::string call(std::string_view name, const std::string& a, const std::string& b) {
    return fmt::format("{}({}, {})", name, a, b);
  }
  static std::string infix(std::string_view sign, const std::string& a, const std::string& b) {
    return fmt::format("{} {} {}", a, sign, b);
  }
  /// A function of C's library, in its variant for f32 or f64.
  std::string function(std::string_view name, const std::string& a) const {
    return rounded(fmt::format("{}{}({})", name, operand_ == Dtype::f64 ? "" : "f", wide(a)));
  }
  std::string arithmetic(std::string_view name, std::string_view sign, const std::string& a,
                         const std::string& b) const {
    return is_integer(operand_) ? call(name, a, b) : rounded(infix(sign, wide(a), wide(b)));
  }

  Dtype operand_;
  Dtype result_;
};

}  // namespace

/// Put before kernels with integer arithmetic.
const char* const kIntegerHelpers = R"(
// Integers compute modulo 2^bits, in an unsigned type that is not promoted to a signed one.
template <bool Wide> struct WordOf { using type = u32; };
template <> struct WordOf<true> { using type = u64; };
template <class T> using Word = typename WordOf<(sizeof(T) > 4)>::type;

template <class T> T add(T x, T y) { return T(Word<T>(x) + Word<T>(y)); }
template <class T> T sub(T x, T y) { return T(Word<T>(x) - Word<T>(y)); }
template <class T> T mul(T x, T y) { return T(Word<T>(x) * Word<T>(y)); }
template <class T> T absolute(T x) { return x < T(0) ? sub(T(0), x) : x; }

// The floor of the quotient; 0 for a divisor of 0.
template <class T> T floor_divide(T x, T y) {
  if (y == T(0)) return 0;
  if constexpr (is_signed<T>) {
    if (y == T(-1)) return sub(T(0), x);
    return T(x / y - (x % y != 0 && (x < 0) != (y < 0)));
  }
  return T(x / y);
}

// The integer part of the power, modulo 2^bits.
template <class T> T integer_pow(T base, T exponent) {
  if constexpr (is_signed<T>) {
    if (exponent < 0) return base == T(1) ? T(1) : base == T(-1) ? (exponent & 1 ? T(-1) : T(1)) : T(0);
  }
  T result = 1;
  for (u64 left = u64(exponent); left != 0; left >>= 1) {
    if (left & 1) result = mul(result, base);
    base = mul(base, base);
  }
  return result;
}
)";

const char* const kSignHelper = R"(
template <class T> T sign(T x) { return x != x ? x : T((x > T(0)) - (x < T(0))); }
)";

std::string cuda_literal(const Number& value, Dtype dtype) { return literal(value, dtype); }

std::string cuda_instruction(Opcode opcode, Dtype operand, Dtype result,
                             const std::string (&operands)[3]) {
  return Writer(operand, result).write(opcode, operands[0], operands[1], operands[2]);
}

}  // namespace forebay::expr
