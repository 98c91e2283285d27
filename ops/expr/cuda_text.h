#pragma once

#include <string>
#include <string_view>

#include <forebay/ops/expr/expression.h>

// A program's arithmetic in CUDA C++, in the words of the kernels' prelude and of expr.cu.
namespace forebay::expr {

/// `const f32 v3 = v1 - 0.13f;` and so on, a line each, from leaves x0, x1, .. of their `cuda_memory_type`.
std::string cuda_statements(const Program& program, std::string_view indent);

/// What instruction `number` gave, after these statements: `v3`, or a literal.
std::string cuda_value(const Program& program, int number);

/// In memory a bool is a byte, of which any but 0 is true.
std::string_view cuda_memory_type(Dtype dtype);

}  // namespace forebay::expr
