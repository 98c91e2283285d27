#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <forebay/ops/eager.h>

namespace forebay {

/// Settings of the op `expr`. (`forebay::expr` is the namespace of the pointwise language, hence
/// the name.)
struct ExprOp {
  std::string expr = {};  ///< "log1p(abs(x) * gain)"
  void fields(FieldVisitor& visitor);
};

/// Evaluates an expression over fields, element by element; the language is in
/// ops/expr_op/README.md. C++ programs write the same with operators: see lazy.h.
///
///     out = expression(fields)
///
/// Shapes:  those of the fields that it names, broadcast.
/// Dtypes:  all, promoted as in NumPy 2; a number takes the dtype of the array that it meets.
/// Devices: cpu, cuda; + - * / sqrt, comparisons and choices the same bits, the other functions
///          within 2 ulp.
/// Errors:  invalid for text that is no expression, a name that `fields` lacks, shapes that do not
///          broadcast; unsupported for a dtype that an operation does not take. All with the
///          column.
/// Source:  NumPy 2, but what makes a float of integers alone makes f32.
Array eval(std::string_view expression, const std::vector<std::pair<std::string, Array>>& fields,
           const Context& context);

}  // namespace forebay
