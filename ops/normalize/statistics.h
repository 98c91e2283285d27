#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <forebay/ops/normalize/normalize.h>

// What the bodies of normalize share. The structs are those of normalize.cu.
namespace forebay::normalize_detail {

/// Axes that the statistics run over. Errors: see `reduced_axes`.
AxisSet statistics_axes(const Normalize& settings, const Dims& shape);

/// Axes of x along which a mean or std of several values runs.
AxisSet constant_axes(const Normalize& settings, const Dims& shape);

/// d of the formula for a std or its square. NaN stays NaN.
double divisor(double variance, double epsilon, EpsilonPlace place);
double divisor_of_std(double std, double epsilon, EpsilonPlace place);

/// Whether f32 arithmetic can give the result from elements of `input`: they are exact in it.
inline bool is_narrow(Dtype input, Dtype output) {
  return output != Dtype::f64 && size_of(input) <= 4 && input != Dtype::u32 && input != Dtype::i32;
}

/// Partial statistics of some elements of a slice.
struct Moments {
  double mean = 0;
  double m2 = 0;  ///< sum of squared distances from `mean`
};

/// How the elements of one slice become results.
///
/// Elements that f32 holds exactly are summed in f64 as they are: 29 bits more than theirs keep the
/// mean within 2^-45 of it. Of others distances from the slice's first element (0 when that is not
/// finite) are summed; `mean` is such a distance. They are exact or rounded at 2^-53 of something
/// no larger than std * sqrt(n), so sums of them are safe whatever the mean, and u64 and i64 lose
/// nothing. Either way a slice of equal elements has a std of exactly 0. With a given mean nothing
/// is taken off: x - mean is then the formula.
struct Scale {
  double mean = 0;
  double divisor = 1;
};

/// The f32 road: ((x - high) - low) / divisor, with high + low = mean to 48 bits.
struct NarrowScale {
  float high, low, divisor;
  bool fits;  ///< no overflow or loss on the way; else the f64 road is taken for this slice
};
NarrowScale narrow(const Scale& scale);

}  // namespace forebay::normalize_detail
