#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <forebay/ops/expr/expression.h>

// A program's arithmetic in CUDA C++, in the words of the kernels' prelude and of expr.cu.
namespace forebay::expr {

/// What a kernel that computes many elements at once does for them together. Nothing: each element by itself.
struct CudaShared {
  struct Leaf {
    bool one_value = false;  ///< many elements share it
    bool is_known = false;   ///< .. and it was looked at:
    bool divides = false;    ///< whether it may divide by its inverse
    bool shifts =
        false;  ///< whether small integers less it are harmless: `Doubt::see_shift` in expr.cu
    bool is_widened = false;  ///< it comes as f32 though memory has bytes: `as_f32` in expr.cu
  };
  std::vector<Leaf> leaves;  ///< none, or one for each of the program's
  /// Some functions are computed the short way, and elements for which it does not do again (`Doubt` in expr.cu). The
  /// function that the statements are in has `bool Exact` and `Doubt& doubt`. Division by one number is by its inverse,
  /// kept in `x2_inverse` for leaf 2.
  bool doubts = false;
};

/// What divides by its inverse, and what integers may lose: bounds of `inverse_of` and `Doubt::see_shift` in expr.cu.
bool may_divide(double value);
bool may_shift(double value);

/// `const f32 v3 = v1 - 0.13f;` and so on, a line each, from leaves x0, x1, .. of their `cuda_memory_type`.
std::string cuda_statements(const Program& program, std::string_view indent,
                            const CudaShared& shared = {});

/// What instruction `number` gave, after these statements: `v3`, or a literal.
std::string cuda_value(const Program& program, int number);

/// In memory a bool is a byte, of which any but 0 is true.
std::string_view cuda_memory_type(Dtype dtype);

/// Whether an instruction is computed the short way and looked at.
bool is_doubted(const Program& program, int number, const CudaShared& shared);

/// How an instruction is a `quotient`.
struct CudaQuotient {
  bool by_inverse = false;  ///< else it is not
  int divisor_leaf = -1;    ///< the leaf that divides; -1 for a number
  /// What is divided is a small integer less a number, so that nothing can underflow or overflow but for that number;
  bool is_small = false;
  int shift_leaf = -1;  ///< .. which is this leaf; -1 for a number
};
CudaQuotient quotient_of(const Program& program, int number, const CudaShared& shared);

/// Leaves of bytes that are only ever cast to f32.
std::vector<bool> leaves_only_widened(const Program& program);

}  // namespace forebay::expr
