#include <bit>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>

#include <forebay/array/require.h>
#include <forebay/ops/expr/expression.h>
#include <forebay/ops/expr/opcodes.h>

namespace forebay::expr {
namespace {

/// A number by its bits: 0.0 is not -0.0, and a NaN is itself.
std::pair<int, std::uint64_t> bits_of(const Number& number) {
  const int kind = static_cast<int>(number.kind());
  switch (number.kind()) {
    case Number::Kind::i64:
      return {kind, static_cast<std::uint64_t>(number.i64())};
    case Number::Kind::u64:
      return {kind, number.u64()};
    default:
      return {kind, std::bit_cast<std::uint64_t>(number.f64())};
  }
}

class Compiler {
 public:
  explicit Compiler(const Dims& shape) { program.shape = shape; }

  int emit(const Expr& a) {
    const auto found = numbers_.find(a.node());
    if (found != numbers_.end()) return found->second;
    const Node& node = *a.node();
    Program::Instruction instruction;
    instruction.opcode = node.opcode;
    instruction.dtype = node.dtype;
    instruction.value = node.value;
    if (node.opcode == Opcode::leaf) instruction.leaf = leaf_number(node);
    for (int i = 0; i < info(node.opcode).operands; ++i)
      instruction.args[i] = emit(node.args[i]);
    const int number = once(instruction);
    numbers_.emplace(a.node(), number);
    return number;
  }

  Program program;

 private:
  using Key = std::tuple<Opcode, Dtype, int, int, int, int, std::pair<int, std::uint64_t>>;

  int once(const Program::Instruction& instruction) {
    const Key key{instruction.opcode,        instruction.dtype,   instruction.args[0],
                  instruction.args[1],       instruction.args[2], instruction.leaf,
                  bits_of(instruction.value)};
    const auto [place, is_new] = known_.emplace(key, static_cast<int>(program.code.size()));
    if (is_new) program.code.push_back(instruction);
    return place->second;
  }

  int leaf_number(const Node& node) {
    Program::Leaf leaf{node.source, node.table, node.dtype, node.offset, node.strides};
    for (int axis = 0; axis < node.shape.rank; ++axis) {
      if (node.shape[axis] <= 1) leaf.strides[axis] = 0;
    }
    for (std::size_t i = 0; i < program.leaves.size(); ++i) {
      const Program::Leaf& other = program.leaves[i];
      if (other.source == leaf.source && other.table.data() == leaf.table.data() &&
          other.dtype == leaf.dtype && other.offset == leaf.offset &&
          other.strides == leaf.strides) {
        return static_cast<int>(i);
      }
    }
    program.leaves.push_back(std::move(leaf));
    return static_cast<int>(program.leaves.size()) - 1;
  }

  std::unordered_map<const Node*, int> numbers_;
  std::map<Key, int> known_;
};

std::string_view infix(Opcode opcode) {
  switch (opcode) {
    case Opcode::add:
      return "+";
    case Opcode::sub:
      return "-";
    case Opcode::mul:
      return "*";
    case Opcode::div:
      return "/";
    case Opcode::lt:
      return "<";
    case Opcode::le:
      return "<=";
    case Opcode::eq:
      return "==";
    case Opcode::ne:
      return "!=";
    default:
      return {};
  }
}

/// As short as the dtype allows: 0.13 for the f32 that is nearest to it.
std::string constant_text(const Program::Instruction& constant) {
  if (constant.value.is_integer() || real_of(constant.dtype) == Dtype::f64)
    return to_string(constant.value);
  const std::string text = fmt::format("{}", static_cast<float>(constant.value.f64()));
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

std::string leaf_text(const Program::Leaf& leaf, const Dims& shape) {
  std::string text = leaf.is_index()     ? std::string("index")
                     : leaf.source >= 0 ? fmt::format("source[{}]", leaf.source)
                                        : fmt::format("table{}", to_string(leaf.table.shape()));
  if (leaf.offset != 0) text += fmt::format(" from {}", leaf.offset);
  if (!is_dense(shape, leaf.strides)) text += fmt::format(" strides {}", to_string(leaf.strides));
  return text;
}

}  // namespace

Program compile(std::span<const Expr> outputs) {
  FOREBAY_REQUIRE(!outputs.empty(), invalid, "compile: no outputs; give at least one.");
  Compiler compiler(outputs[0].shape());
  for (const Expr& output : outputs) {
    FOREBAY_REQUIRE(output.shape() == outputs[0].shape(), invalid,
                    "compile: outputs have shapes {} and {}; one kernel has one shape.",
                    to_string(outputs[0].shape()), to_string(output.shape()));
    const int number = compiler.emit(output);
    compiler.program.outputs.push_back(number);
  }
  return std::move(compiler.program);
}

std::string to_string(const Program& program) {
  std::string text = fmt::format("for each of {}:\n", to_string(program.shape));
  const auto operand = [&](int number) {
    const Program::Instruction& instruction = program.code[static_cast<std::size_t>(number)];
    return instruction.opcode == Opcode::constant ? constant_text(instruction)
                                                  : fmt::format("v{}", number);
  };
  for (std::size_t i = 0; i < program.code.size(); ++i) {
    const Program::Instruction& instruction = program.code[i];
    if (instruction.opcode == Opcode::constant) continue;
    std::string right;
    const std::string_view sign = infix(instruction.opcode);
    if (instruction.opcode == Opcode::leaf) {
      right = leaf_text(program.leaves[static_cast<std::size_t>(instruction.leaf)], program.shape);
    } else if (!sign.empty()) {
      right =
          fmt::format("{} {} {}", operand(instruction.args[0]), sign, operand(instruction.args[1]));
    } else {
      const OpcodeInfo& opcode = info(instruction.opcode);
      for (int k = 0; k < opcode.operands; ++k)
        right += (k == 0 ? "" : ", ") + operand(instruction.args[k]);
      right = fmt::format("{}({})", opcode.name, right);
    }
    text += fmt::format("  v{}: {} = {}\n", i, name_of(instruction.dtype), right);
  }
  for (std::size_t k = 0; k < program.outputs.size(); ++k) {
    text += fmt::format("  out[{}] = {}\n", k, operand(program.outputs[k]));
  }
  return text;
}

}  // namespace forebay::expr
