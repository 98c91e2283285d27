#pragma once

#include <span>
#include <string_view>
#include <utility>
#include <variant>

#include <forebay/ops/expr/expression.h>

// The pointwise language with the dtype promotion of NumPy 2: what the `expr` op and the
// expressions of C++ users (lazy.h) are made of. A number is weak: it takes the dtype of the array
// that it meets.
namespace forebay::expr {

/// The common dtype of two arrays, as numpy.promote_types has it: u8 with i8 is i16, i32 with f32
/// is f64, u64 with i64 is f64, f16 with bf16 is f32, bool with anything is that.
Dtype promote(Dtype a, Dtype b);

}  // namespace forebay::expr

namespace forebay::expr::numpy {

/// An array's elements, or a number.
class Operand {
 public:
  Operand(Expr expr) : value_(std::move(expr)) {}    // NOLINT(google-explicit-constructor)
  Operand(const Number& number) : value_(number) {}  // NOLINT(google-explicit-constructor)
  bool is_number() const { return std::holds_alternative<Number>(value_); }
  const Number& number() const { return std::get<Number>(value_); }
  const Expr& expr() const { return std::get<Expr>(value_); }

 private:
  std::variant<Expr, Number> value_;
};

// Where the rules are ours: whatever makes a float of integers or bools alone (a quotient, sqrt,
// exp, a float number added to them) makes f32, as everywhere in pipelines, where NumPy makes
// float64. Between arrays, and in comparisons, it is NumPy's. Numbers among themselves are computed
// in f64, integers exactly.
// Errors: unsupported for a dtype that the operation does not take; invalid for shapes that do not
//         broadcast, and for a whole number that the integers it meets cannot hold, where that
//         changes the result.

/// Any opcode of one operand. Of real numbers `imag` is 0, `conj` and `real` the number, `norm` its
/// square.
Operand unary(Opcode opcode, const Operand& a);
/// Any opcode of two operands. `add` and `mul` of bools are or and and; a square is a product.
Operand binary(Opcode opcode, const Operand& a, const Operand& b);
/// minimum(maximum(x, low), high).
Operand clip(const Operand& x, const Operand& low, const Operand& high);
/// `a` where `condition` is true (not 0), else `b`.
Operand where(const Operand& condition, const Operand& a, const Operand& b);
Operand astype(const Operand& a, Dtype dtype);

/// A function as the text of expressions has it.
struct Function {
  std::string_view name;
  int operands;
  Operand (*apply)(std::span<const Operand> operands);
  std::string_view meaning;
};
/// All of them but the casts, which are called as the dtypes are.
std::span<const Function> functions();

}  // namespace forebay::expr::numpy
