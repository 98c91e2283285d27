#include <forebay/ops/expr/exact_fma.h>

#include <cmath>

#include <forebay/ops/expr/opcodes.h>

namespace forebay::expr {
namespace {

const Program::Instruction& at(const Program& program, int number) {
  return program.code[static_cast<std::size_t>(number)];
}

/// Which operand of an instruction with two is a number, or -1.
int number_among(const Program& program, const Program::Instruction& instruction) {
  for (int k : {1, 0}) {
    if (at(program, instruction.args[k]).opcode == Opcode::constant) return k;
  }
  return -1;
}

/// An f32 times a power of two, as an operand and a factor.
struct Scaled {
  int operand = -1;  ///< -1: it is none
  double factor = 1;
};
Scaled as_scaled(const Program& program, const Program::Instruction& instruction) {
  if (instruction.dtype != Dtype::f32) return {};
  const bool divides = instruction.opcode == Opcode::div;
  if (!divides && instruction.opcode != Opcode::mul) return {};
  const int k = number_among(program, instruction);
  if (k < 0 || (divides && k == 0)) return {};
  const double value = at(program, instruction.args[k]).value.f64();
  int exponent = 0;
  if (std::abs(std::frexp(value, &exponent)) != 0.5) return {};
  if (!(std::abs(value) >= 0x1p-20 && std::abs(value) <= 0x1p20)) return {};
  return {instruction.args[1 - k], divides ? 1 / value : value};
}

/// An f32, or what is less than it, and a number of middling size: sign * operand + shift.
struct Shifted {
  int operand = -1;  ///< -1: it is none
  double sign = 1, shift = 0;
};
Shifted as_shifted(const Program& program, const Program::Instruction& instruction) {
  if (instruction.dtype != Dtype::f32) return {};
  const bool subtracts = instruction.opcode == Opcode::sub;
  if (!subtracts && instruction.opcode != Opcode::add) return {};
  const int k = number_among(program, instruction);
  if (k < 0) return {};
  const double value = at(program, instruction.args[k]).value.f64();
  if (!(std::abs(value) >= 0x1p-60 && std::abs(value) <= 0x1p60)) return {};
  return {instruction.args[1 - k], subtracts && k == 0 ? -1.0 : 1.0,
          subtracts && k == 1 ? -value : value};
}

}  // namespace

// With a power of two and a number of such sizes the bits are those of the two operations: the
// power of two rounds nothing but what is too small to show beside the number, and what overflows
// does so either way. Zeros are positive, as those of a sum are; a negative factor on a sum would
// make that negative.
ExactFma exact_fma(const Program& program, int number) {
  const Program::Instruction& instruction = at(program, number);
  if (const Shifted sum = as_shifted(program, instruction); sum.operand >= 0) {
    const Scaled product = as_scaled(program, at(program, sum.operand));
    if (product.operand >= 0) return {product.operand, sum.sign * product.factor, sum.shift};
  }
  if (const Scaled product = as_scaled(program, instruction);
      product.operand >= 0 && product.factor > 0) {
    const Shifted sum = as_shifted(program, at(program, product.operand));
    if (sum.operand >= 0)
      return {sum.operand, sum.sign * product.factor, sum.shift * product.factor};
  }
  return {};
}

std::vector<bool> needed_with_fma(const Program& program) {
  std::vector<bool> result(program.code.size());
  const auto need = [&](int number) { result[static_cast<std::size_t>(number)] = true; };
  for (int output : program.outputs)
    need(output);
  for (int i = static_cast<int>(program.code.size()); i-- > 0;) {
    if (!result[static_cast<std::size_t>(i)]) continue;
    const Program::Instruction& instruction = at(program, i);
    const ExactFma sum = exact_fma(program, i);
    if (sum.operand >= 0) need(sum.operand);
    for (int k = 0; sum.operand < 0 && k < info(instruction.opcode).operands; ++k)
      need(instruction.args[k]);
  }
  return result;
}

}  // namespace forebay::expr
