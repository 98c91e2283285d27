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

std::string right_side(const Program& program, const Program::Instruction& instruction) {
  if (instruction.opcode == Opcode::leaf) {
    return fmt::format("x{}{}", instruction.leaf,
                       instruction.dtype == Dtype::boolean ? " != 0" : "");
  }
  const int operands = info(instruction.opcode).operands;
  std::string texts[3];
  for (int k = 0; k < operands; ++k)
    texts[k] = cuda_value(program, instruction.args[k]);
  const int last = instruction.args[operands - 1];
  const Dtype operand = program.code[static_cast<std::size_t>(last)].dtype;
  return Writer(operand, instruction.dtype).write(instruction.opcode, texts[0], texts[1], texts[2]);
}

}  // namespace

std::string cuda_value(const Program& program, int number) {
  const Program::Instruction& instruction = program.code[static_cast<std::size_t>(number)];
  return instruction.opcode == Opcode::constant ? literal(instruction.value, instruction.dtype)
                                                : fmt::format("v{}", number);
}

std::string cuda_statements(const Program& program, std::string_view indent) {
  std::string text;
  for (std::size_t i = 0; i < program.code.size(); ++i) {
    const Program::Instruction& instruction = program.code[i];
    if (instruction.opcode == Opcode::constant) continue;
    text += fmt::format("{}const {} v{} = {};\n", indent, name_of(instruction.dtype), i,
                        right_side(program, instruction));
  }
  return text;
}

std::string_view cuda_memory_type(Dtype dtype) {
  return dtype == Dtype::boolean ? "u8" : name_of(dtype);
}

}  // namespace forebay::expr
