#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include <forebay/ops/dtype_set.h>
#include <forebay/ops/op.h>

// What the infer functions of several ops check, in the same words.
namespace forebay {

/// Errors: unsupported, "normalize: `x` has dtype c64; supported: bool, integers, f16, bf16, f32,
/// f64. Add an `abs` stage before it."
void check_dtype(std::string_view op, std::string_view argument, Dtype dtype, DtypeSet supported);

/// The dtype of a float result: `wanted` when given, else the input's own when it is a float, else
/// f32. Errors: invalid when `wanted` is not a float, "log: `dtype` is u8; it must be f16, bf16,
/// f32 or f64."
Dtype float_result(std::string_view op, Dtype input, const std::optional<Dtype>& wanted);

/// The type that arithmetic with a result of `dtype` runs in: f32 for f16 and bf16, else `dtype`
/// itself.
constexpr Dtype work_type(Dtype dtype) {
  return dtype == Dtype::f16 || dtype == Dtype::bf16 ? Dtype::f32 : dtype;
}
/// The type that arithmetic between an input and a float result runs in: f64 when either is f64,
/// else f32.
constexpr Dtype work_type(Dtype input, Dtype result) {
  return input == Dtype::f64 || result == Dtype::f64 ? Dtype::f64 : Dtype::f32;
}

/// The setting `axis` of an op on `x`, counted from 0.
/// Errors: invalid, "frame: `axis` is 2, but `x` has shape (3, 4); it must be from -2 to 1."
int axis_of(std::string_view op, std::int64_t axis, const Dims& shape);

/// Of a setting with one entry for each of `count` axes, or one for all, that for axis number `i`.
/// Errors: invalid, "crop: `stop` has 3 entries for 2 axes; give one for each, or one for all."
std::int64_t entry_of(std::string_view op, std::string_view argument,
                      const std::vector<std::int64_t>& list, std::size_t i, std::size_t count);

/// The setting `axes` of an op on `x`, each counted from 0.
/// Errors: invalid without any, for one that is not there and for one named twice.
std::vector<int> axes_of(std::string_view op, const std::vector<std::int64_t>& axes,
                         const Dims& shape);

/// Extents or axes as the user listed them.
/// Errors: invalid for more than kMaxRank, "reshape: `shape` has 9 entries; arrays have at most 8
/// axes."
Dims dims_of(std::string_view op, std::string_view argument, const std::vector<std::int64_t>& list);

/// `axis` of an input `x` of this shape, counted from 0; negative ones count from the last.
/// Errors: invalid,
/// "fft: `axis` names axis 2, but `x` has shape (4, 5); its axes are -2 to 1." or
/// "fft: `axis` names axis -1, but `x` is a scalar, shape (); it must have at least one axis."
int checked_axis(std::string_view op, std::string_view argument, std::int64_t axis,
                 const Dims& shape);

}  // namespace forebay
