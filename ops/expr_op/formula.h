#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <forebay/ops/expr/numpy.h>

namespace forebay::expr {

/// An expression as people write it: names, numbers, pi, e, inf and nan, + - * / ** and unary -, &
/// | ~ of bools, comparisons and parentheses with Python's precedence, the functions of numpy.h,
/// and casts that are called as dtypes.
class Formula {
 public:
  /// Errors: invalid, "column 9: unknown function `log1`; did you mean `log1p`?" Columns count
  ///         characters from 1.
  explicit Formula(std::string_view text);

  /// What it reads, in the order of first use.
  const std::vector<std::string>& names() const { return names_; }
  /// `values` are those of `names()`.
  /// Errors: of the operations, with the column before them; invalid when no array is in the
  ///         result.
  Expr evaluate(std::span<const Expr> values) const;

  /// A number, a name, or an operation on other terms.
  struct Term {
    int column = 1;
    int depth = 1;  ///< of the tree
    Number number;
    int name = -1;  ///< index into names()
    std::function<numpy::Operand(std::span<const numpy::Operand>)> apply;
    std::vector<Term> operands;
  };

 private:
  std::vector<std::string> names_;  // first: parsing fills it
  Term root_;
};

}  // namespace forebay::expr
