#pragma once

#include <string>

#include <forebay/ops/expr/expression.h>

// Single instructions of the language in CUDA C++, in the words of the kernels' prelude.
namespace forebay::expr {

/// Put before kernels whose integers do more than move and compare.
extern const char* const kIntegerHelpers;
/// Put before kernels with `sign`.
extern const char* const kSignHelper;

/// `value`, which an element of `dtype` holds exactly, as an expression of that type.
std::string cuda_literal(const Number& value, Dtype dtype);

/// The right side of an instruction; `operand` is the dtype of its operands (of the last two for
/// select).
std::string cuda_instruction(Opcode opcode, Dtype operand, Dtype result,
                             const std::string (&operands)[3]);

}  // namespace forebay::expr
