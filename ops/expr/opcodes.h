#pragma once

#include <string_view>

#include <forebay/ops/dtype_set.h>
#include <forebay/ops/expr/expression.h>

namespace forebay::expr {

/// What the executors and the checks know of one opcode.
struct OpcodeInfo {
  std::string_view name;
  int operands;
  DtypeSet supported;  ///< dtypes of the operands (of the last two for select)
};

const OpcodeInfo& info(Opcode opcode);

/// The dtype of the result for operands of `operand`.
Dtype result_dtype(Opcode opcode, Dtype operand);

/// Every opcode that computes, for tests and tables: all but leaf, constant, the casts, select and
/// those of random numbers.
std::span<const Opcode> computing_opcodes();

}  // namespace forebay::expr
