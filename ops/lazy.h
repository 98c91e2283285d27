#pragma once

#include <optional>
#include <type_traits>
#include <utility>

#include <forebay/ops/eager.h>
#include <forebay/ops/expr/numpy.h>

namespace forebay {

/// Arithmetic on arrays that waits: operators and functions build an expression, `eval` runs it as
/// one kernel.
///
///     Lazy y = clip((x - mean) / sigma, -3, 3);  // x an Array; the others numbers or Arrays
///     Array result = eval(y, context);
///
/// A Lazy owns the arrays that it reads and may be used many times. Arrays and numbers are Lazies
/// by themselves.
///
/// Dtypes:  promoted as in NumPy 2, with what ops/expr_op/README.md says; a number takes the dtype
///          of the array that it meets. f16 and bf16 are rounded at each operation: the bits are
///          those of the operations one by one.
/// Devices: cpu, cuda; all arrays of one expression on one device, where they stay.
/// Errors:  when the expression is built: invalid for shapes that do not broadcast and for arrays
///          on two devices; unsupported for a dtype that an operation does not take.
/// Source:  NumPy 2.
class Lazy {
 public:
  Lazy(const Array& array);  // NOLINT(google-explicit-constructor): an operand
  template <class T>
  requires std::is_arithmetic_v<T> Lazy(T number)  // NOLINT(google-explicit-constructor)
      : operand_(Number(number)) {}

  /// Of the elements. Errors: invalid for a number, which has none yet.
  Dtype dtype() const;
  /// () for a number.
  Dims shape() const;

  /// For functions over Lazies: `operand` reads arrays on `device`; without one it is made of
  /// numbers alone.
  Lazy(expr::numpy::Operand operand, std::optional<Device> device)
      : operand_(std::move(operand)), device_(device) {}
  const expr::numpy::Operand& operand() const { return operand_; }
  const std::optional<Device>& device() const { return device_; }

 private:
  expr::numpy::Operand operand_;
  std::optional<Device> device_;
};

/// Enqueues the expression as one kernel on context.stream and returns; the result comes from
/// context.memory.
/// Errors: invalid for arrays on another device than the stream's, and for a number.
Array eval(const Lazy& x, const Context& context);

Lazy operator-(const Lazy& x);
Lazy operator+(const Lazy& a, const Lazy& b);
Lazy operator-(const Lazy& a, const Lazy& b);
Lazy operator*(const Lazy& a, const Lazy& b);
Lazy operator/(const Lazy& a, const Lazy& b);
Lazy operator<(const Lazy& a, const Lazy& b);
Lazy operator<=(const Lazy& a, const Lazy& b);
Lazy operator>(const Lazy& a, const Lazy& b);
Lazy operator>=(const Lazy& a, const Lazy& b);
Lazy operator==(const Lazy& a, const Lazy& b);
Lazy operator!=(const Lazy& a, const Lazy& b);
// And, or and not of bools. C++ binds & and | less than comparisons, the text of the `expr` op
// more.
Lazy operator&(const Lazy& a, const Lazy& b);
Lazy operator|(const Lazy& a, const Lazy& b);
Lazy operator~(const Lazy& x);

// What each does is in ops/expr_op/README.md.
Lazy abs(const Lazy& x);
Lazy sqrt(const Lazy& x);
Lazy exp(const Lazy& x);
Lazy expm1(const Lazy& x);
Lazy log(const Lazy& x);
Lazy log1p(const Lazy& x);
Lazy log2(const Lazy& x);
Lazy log10(const Lazy& x);
Lazy sin(const Lazy& x);
Lazy cos(const Lazy& x);
Lazy tanh(const Lazy& x);
Lazy floor(const Lazy& x);
Lazy ceil(const Lazy& x);
Lazy round(const Lazy& x);
Lazy sign(const Lazy& x);
Lazy isnan(const Lazy& x);
Lazy real(const Lazy& x);
Lazy imag(const Lazy& x);
Lazy conj(const Lazy& x);
Lazy norm(const Lazy& x);
Lazy pow(const Lazy& base, const Lazy& exponent);
Lazy minimum(const Lazy& a, const Lazy& b);
Lazy maximum(const Lazy& a, const Lazy& b);
Lazy clip(const Lazy& x, const Lazy& low, const Lazy& high);
Lazy where(const Lazy& condition, const Lazy& a, const Lazy& b);
Lazy astype(const Lazy& x, Dtype dtype);

// Index maps, as in view.h: the same elements at other places, no pass of their own.
Lazy permute(const Lazy& x, const Dims& axes);
Lazy slice(const Lazy& x, int axis, std::int64_t start, std::int64_t stop, std::int64_t step = 1);
Lazy broadcast_to(const Lazy& x, const Dims& shape);
/// Errors: invalid where the elements do not lie so that the shape is an index map (a permuted
///         array flattened).
Lazy reshape(const Lazy& x, const Dims& shape);

}  // namespace forebay
