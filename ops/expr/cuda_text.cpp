#include <forebay/ops/expr/cuda_text.h>

#include <cmath>

#include <forebay/array/require.h>
#include <forebay/ops/expr/exact_fma.h>
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
      case Opcode::philox:
        return fmt::format("philox_word({}, {}, {})", a, b, c);
      case Opcode::uniform:
      case Opcode::normal:
        return fmt::format("draws::{}({})", info(opcode).name, a);
      case Opcode::leaf:
      case Opcode::constant:
        break;
    }
    return {};
  }
  /// a times or divided by an f32 in the text, rounded as the operation is.
  std::string scaled(const std::string& a, const std::string& factor) const {
    return rounded(infix("*", wide(a), factor));
  }
  /// A function of one operand that expr.cu has in short.
  std::string short_way(Opcode opcode, const std::string& a, bool doubts) const {
    if (doubts) return rounded(fmt::format("{}_of<Exact>({}, doubt)", info(opcode).name, wide(a)));
    if (opcode == Opcode::sqrt) return function("sqrt", a);
    return rounded(fmt::format("{}_exact({})", info(opcode).name, wide(a)));
  }
  std::string quotient(const std::string& a, const std::string& b, const std::string& inverse,
                       bool is_small) const {
    return rounded(fmt::format("{}<Exact>({}, {}, {}{})", is_small ? "small_quotient" : "quotient",
                               wide(a), wide(b), inverse, is_small ? "" : ", doubt"));
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

const Program::Instruction& at(const Program& program, int number) {
  return program.code[static_cast<std::size_t>(number)];
}

bool is_small_float(Dtype dtype) {
  return dtype == Dtype::f32 || dtype == Dtype::f16 || dtype == Dtype::bf16;
}

/// Whether the last operand is a number with an exact inverse.
bool divides_by_power_of_two(const Program& program, const Program::Instruction& instruction) {
  if (instruction.opcode != Opcode::div || !is_small_float(instruction.dtype)) return false;
  const Program::Instruction& divisor = at(program, instruction.args[1]);
  int exponent = 0;
  return divisor.opcode == Opcode::constant &&
         std::abs(std::frexp(divisor.value.f64(), &exponent)) == 0.5 && std::abs(exponent) < 100;
}

const CudaShared::Leaf& leaf_of(const CudaShared& shared, const Program::Instruction& leaf) {
  return shared.leaves[static_cast<std::size_t>(leaf.leaf)];
}

bool has_short_way(const Program::Instruction& instruction) {
  const Opcode opcode = instruction.opcode;
  return is_small_float(instruction.dtype) &&
         (opcode == Opcode::sqrt || opcode == Opcode::log || opcode == Opcode::log1p ||
          opcode == Opcode::exp);
}

/// Whether the value is an integer of 16 bits, in f32.
bool is_small_integer(const Program& program, const Program::Instruction& instruction) {
  if (instruction.opcode != Opcode::cast_saturate || instruction.dtype != Dtype::f32) return false;
  const Dtype from = at(program, instruction.args[0]).dtype;
  return from == Dtype::boolean || (is_integer(from) && size_of(from) <= 2);
}

/// `max_nan(v5, -2.0f)`, the one instruction that is `maximum` but for zeros of either sign: where an operand is
/// another number; nothing elsewhere.
std::string extreme_with_number(const Program& program, const Program::Instruction& instruction,
                                const std::string& a, const std::string& b) {
  const bool least = instruction.opcode == Opcode::minimum;
  if (!least && instruction.opcode != Opcode::maximum) return {};
  if (!is_small_float(instruction.dtype)) return {};
  for (int argument : {instruction.args[0], instruction.args[1]}) {
    const Program::Instruction& operand = at(program, argument);
    if (operand.opcode == Opcode::constant && operand.value.f64() != 0)
      return fmt::format("{}_nan({}, {})", least ? "min" : "max", a, b);
  }
  return {};
}

std::string right_side(const Program& program, int number, const CudaShared& shared) {
  const Program::Instruction& instruction = at(program, number);
  const Dtype dtype = instruction.dtype;
  if (instruction.opcode == Opcode::leaf)
    return fmt::format("x{}{}", instruction.leaf, dtype == Dtype::boolean ? " != 0" : "");
  if (const ExactFma sum = exact_fma(program, number); sum.operand >= 0) {
    return fmt::format("fmaf({}, {}, {})", cuda_value(program, sum.operand),
                       float_literal(sum.factor, Dtype::f32),
                       float_literal(sum.shift, Dtype::f32));
  }
  const int operands = info(instruction.opcode).operands;
  std::string texts[3];
  for (int k = 0; k < operands; ++k)
    texts[k] = cuda_value(program, instruction.args[k]);
  const Writer writer(at(program, instruction.args[operands - 1]).dtype, dtype);
  if (const std::string text = extreme_with_number(program, instruction, texts[0], texts[1]);
      !text.empty())
    return text;
  if (instruction.opcode == Opcode::div && operands == 2) {
    const double value = at(program, instruction.args[1]).value.f64();
    const std::string inverse = float_literal(1 / value, Dtype::f32);
    if (divides_by_power_of_two(program, instruction)) return writer.scaled(texts[0], inverse);
    const CudaQuotient quotient = quotient_of(program, number, shared);
    const int leaf = quotient.divisor_leaf;
    if (quotient.by_inverse)
      return writer.quotient(texts[0], texts[1],
                             leaf < 0 ? inverse : fmt::format("x{}_inverse", leaf),
                             quotient.is_small);
  }
  if (has_short_way(instruction))
    return writer.short_way(instruction.opcode, texts[0], shared.doubts);
  return writer.write(instruction.opcode, texts[0], texts[1], texts[2]);
}

}  // namespace

std::string cuda_value(const Program& program, int number) {
  const Program::Instruction& instruction = at(program, number);
  return instruction.opcode == Opcode::constant ? literal(instruction.value, instruction.dtype)
                                                : fmt::format("v{}", number);
}

std::string cuda_statements(const Program& program, std::string_view indent,
                            const CudaShared& shared) {
  std::string text;
  const std::vector<bool> needed = needed_with_fma(program);
  for (int i = 0; i < static_cast<int>(program.code.size()); ++i) {
    const Program::Instruction& instruction = at(program, i);
    if (instruction.opcode == Opcode::constant || !needed[static_cast<std::size_t>(i)]) continue;
    const auto is_widened = [&](const Program::Instruction& leaf) {
      return leaf.opcode == Opcode::leaf && !shared.leaves.empty() &&
             shared.leaves[static_cast<std::size_t>(leaf.leaf)].is_widened;
    };
    if (is_widened(instruction)) continue;
    const bool widens =
        instruction.opcode == Opcode::cast_saturate && is_widened(at(program, instruction.args[0]));
    text += fmt::format("{}const {} v{} = {};\n", indent, name_of(instruction.dtype), i,
                        widens ? fmt::format("x{}", at(program, instruction.args[0]).leaf)
                               : right_side(program, i, shared));
  }
  return text;
}

bool is_doubted(const Program& program, int number, const CudaShared& shared) {
  const CudaQuotient quotient = quotient_of(program, number, shared);
  return (shared.doubts && has_short_way(at(program, number))) ||
         (quotient.by_inverse && !quotient.is_small);
}

CudaQuotient quotient_of(const Program& program, int number, const CudaShared& shared) {
  const Program::Instruction& instruction = at(program, number);
  if (!shared.doubts || instruction.opcode != Opcode::div) return {};
  if (!is_small_float(instruction.dtype)) return {};
  // The number of an f32 leaf with one value for many elements, or -1.
  const auto shared_leaf = [&](const Program::Instruction& operand) {
    const bool is_leaf = operand.opcode == Opcode::leaf && operand.dtype == Dtype::f32;
    return is_leaf && leaf_of(shared, operand).one_value ? operand.leaf : -1;
  };
  CudaQuotient result;
  const Program::Instruction& divisor = at(program, instruction.args[1]);
  result.divisor_leaf = shared_leaf(divisor);
  if (result.divisor_leaf >= 0)
    result.by_inverse = leaf_of(shared, divisor).divides || !leaf_of(shared, divisor).is_known;
  if (divisor.opcode == Opcode::constant) {
    result.by_inverse =
        may_divide(divisor.value.f64()) && !divides_by_power_of_two(program, instruction);
  }
  const Program::Instruction& divided = at(program, instruction.args[0]);
  result.is_small = is_small_integer(program, divided);
  if (divided.opcode == Opcode::sub && is_small_integer(program, at(program, divided.args[0]))) {
    const Program::Instruction& shift = at(program, divided.args[1]);
    result.shift_leaf = shared_leaf(shift);
    if (result.shift_leaf >= 0)
      result.is_small = leaf_of(shared, shift).shifts || !leaf_of(shared, shift).is_known;
    if (shift.opcode == Opcode::constant) result.is_small = may_shift(shift.value.f64());
  }
  return result;
}

bool may_divide(double value) { return value >= 0x1p-20 && value <= 0x1p20; }

bool may_shift(double value) {
  return value == 0 || (std::abs(value) >= 0x1p-60 && std::abs(value) <= 0x1p60);
}

std::vector<bool> leaves_only_widened(const Program& program) {
  std::vector<bool> result(program.leaves.size());
  for (std::size_t i = 0; i < result.size(); ++i)
    result[i] = program.leaves[i].dtype == Dtype::u8;
  const auto use = [&](int number) {
    const Program::Instruction& used = at(program, number);
    if (used.opcode == Opcode::leaf) result[static_cast<std::size_t>(used.leaf)] = false;
  };
  for (const Program::Instruction& instruction : program.code) {
    if (instruction.opcode == Opcode::cast_saturate && instruction.dtype == Dtype::f32) continue;
    for (int k = 0; k < info(instruction.opcode).operands; ++k)
      use(instruction.args[k]);
  }
  for (int output : program.outputs)
    use(output);
  return result;
}

std::string_view cuda_memory_type(Dtype dtype) {
  return dtype == Dtype::boolean ? "u8" : name_of(dtype);
}

}  // namespace forebay::expr
