#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include <forebay/ops/op.h>

namespace forebay {

/// What the operands of a product are rounded to. Sums are in f32 at least, with each of them.
enum class Compute { f32, tf32, f16, bf16, f64 };
std::span<const std::string_view> names_of(Compute);

struct Matmul {
  ConstantArray other = {};  ///< when there is no second input
  bool transpose_other = false;
  Compute compute = Compute::f32;
  std::optional<Dtype> dtype = {};
  void fields(FieldVisitor& visitor);
};

/// Matrix product.
///
///     out[..., i, j] = sum over k of x[..., i, k] * other[..., k, j]        (other[..., j, k] with
///     transpose_other)
///
/// Shapes:  x [..., M, K], other [..., K, N], out [..., M, N]; leading axes broadcast. An x of rank
/// 1 is a row, an
///          other of rank 1 a column, and the axis that this adds is left out of the result. K = 0
///          gives zeros.
/// Dtypes:  the operands are promoted to one type as in NumPy, which is also the result's unless
/// `dtype` says
///          otherwise. Integers: exact modulo 2^bits. f16 and bf16: summed in f32, rounded once.
///          f32: with `compute` tf32, f16 or bf16 the operands are rounded to that (on the CPU tf32
///          stays f32); f64 sums in f64 and rounds once. f64 and c128: always in f64. c64: f32,
///          tf32 or f64.
/// Devices: cpu, cuda. Enqueues and returns. The same bits at every thread count.
/// Errors:  invalid for shapes that do not fit, a scalar, settings that do not go with the dtypes;
/// unsupported for bool
///          and for u64 with a signed type, which have no common integer type.
/// Meaning: numpy.matmul.
Array matmul(const Array& x, const Array& other, const Matmul& settings, const Context& context);
/// With `settings.other`.
Array matmul(const Array& x, const Matmul& settings, const Context& context);

}  // namespace forebay
