#include <forebay/ops/expr/opcodes.h>

#include <array>

namespace forebay::expr {
namespace {

constexpr DtypeSet kNumbers = kIntegers | kFloats;

/// In the order of the enumerators.
constexpr std::array kInfo = {
    OpcodeInfo{"leaf", 0, kEvery},
    OpcodeInfo{"constant", 0, kEvery},
    OpcodeInfo{"cast", 1, kEvery},
    OpcodeInfo{"wrap", 1, kBool | kIntegers},
    OpcodeInfo{"neg", 1, kNumbers | kComplex},
    OpcodeInfo{"abs", 1, kNumbers | kComplex},
    OpcodeInfo{"sqrt", 1, kFloats},
    OpcodeInfo{"exp", 1, kFloats},
    OpcodeInfo{"expm1", 1, kFloats},
    OpcodeInfo{"log", 1, kFloats},
    OpcodeInfo{"log1p", 1, kFloats},
    OpcodeInfo{"log2", 1, kFloats},
    OpcodeInfo{"log10", 1, kFloats},
    OpcodeInfo{"sin", 1, kFloats},
    OpcodeInfo{"cos", 1, kFloats},
    OpcodeInfo{"tanh", 1, kFloats},
    OpcodeInfo{"floor", 1, kFloats},
    OpcodeInfo{"ceil", 1, kFloats},
    OpcodeInfo{"round_even", 1, kFloats},
    OpcodeInfo{"sign", 1, kNumbers},
    OpcodeInfo{"real", 1, kComplex},
    OpcodeInfo{"imag", 1, kComplex},
    OpcodeInfo{"norm", 1, kComplex},
    OpcodeInfo{"conj", 1, kComplex},
    OpcodeInfo{"add", 2, kNumbers | kComplex},
    OpcodeInfo{"sub", 2, kNumbers | kComplex},
    OpcodeInfo{"mul", 2, kNumbers | kComplex},
    OpcodeInfo{"div", 2, kNumbers | kComplex},
    OpcodeInfo{"pow", 2, kNumbers},
    OpcodeInfo{"minimum", 2, kReals},
    OpcodeInfo{"maximum", 2, kReals},
    OpcodeInfo{"lt", 2, kReals},
    OpcodeInfo{"le", 2, kReals},
    OpcodeInfo{"eq", 2, kEvery},
    OpcodeInfo{"ne", 2, kEvery},
    OpcodeInfo{"is_nan", 1, kFloats | kComplex},
    OpcodeInfo{"logical_and", 2, kBool},
    OpcodeInfo{"logical_or", 2, kBool},
    OpcodeInfo{"logical_not", 1, kBool},
    OpcodeInfo{"select", 3, kEvery},
    OpcodeInfo{"philox", 3, {Dtype::u64}},
    OpcodeInfo{"uniform", 1, {Dtype::u32, Dtype::u64}},
    OpcodeInfo{"normal", 1, {Dtype::u32, Dtype::u64}},
};
static_assert(kInfo.size() == static_cast<std::size_t>(Opcode::normal) + 1);

constexpr auto kComputing = [] {
  std::array<Opcode,
             static_cast<std::size_t>(Opcode::select) - static_cast<std::size_t>(Opcode::neg)>
      result{};
  for (std::size_t i = 0; i < result.size(); ++i) {
    result[i] = static_cast<Opcode>(static_cast<std::size_t>(Opcode::neg) + i);
  }
  return result;
}();

}  // namespace

const OpcodeInfo& info(Opcode opcode) { return kInfo[static_cast<std::size_t>(opcode)]; }

Dtype result_dtype(Opcode opcode, Dtype operand) {
  switch (opcode) {
    case Opcode::abs:
    case Opcode::real:
    case Opcode::imag:
    case Opcode::norm:
      return real_of(operand);
    case Opcode::lt:
    case Opcode::le:
    case Opcode::eq:
    case Opcode::ne:
    case Opcode::is_nan:
      return Dtype::boolean;
    case Opcode::philox:
      return Dtype::u32;
    case Opcode::uniform:
    case Opcode::normal:
      return operand == Dtype::u64 ? Dtype::f64 : Dtype::f32;
    default:
      return operand;
  }
}

std::span<const Opcode> computing_opcodes() { return kComputing; }

}  // namespace forebay::expr
