#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <forebay/ops/expr/expression.h>

// A program's arithmetic in CUDA C++, in the words of the kernels' prelude and of expr.cu.
namespace forebay::expr {

/// What a kernel that computes many elements at once does for them together. Nothing: each element by itself.
struct CudaShared {
  /// Division by one number for many elements is by its inverse, kept in `x2_inverse` for leaf 2: `quotient` in
  /// expr.cu. The function that the statements are in has `bool Exact` and `Doubt& doubt`.
  bool quotients = false;
  std::vector<bool> one_value;  ///< for each leaf, whether many elements share its value
  /// Leaves that come as f32 though memory has bytes: `as_f32` in expr.cu.
  std::vector<bool> widened;
};

/// `const f32 v3 = v1 - 0.13f;` and so on, a line each, from leaves x0, x1, .. of their `cuda_memory_type`.
std::string cuda_statements(const Program& program, std::string_view indent,
                            const CudaShared& shared = {});

/// What instruction `number` gave, after these statements: `v3`, or a literal.
std::string cuda_value(const Program& program, int number);

/// In memory a bool is a byte, of which any but 0 is true.
std::string_view cuda_memory_type(Dtype dtype);

/// Whether instruction `number` becomes a `quotient`, and the leaf that divides; -1 for a number or no quotient.
bool is_quotient(const Program& program, int number, const CudaShared& shared);
int quotient_leaf(const Program& program, int number, const CudaShared& shared);

/// Leaves of bytes that are only ever cast to f32.
std::vector<bool> leaves_only_widened(const Program& program);

}  // namespace forebay::expr
