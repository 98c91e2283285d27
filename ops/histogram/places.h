#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include <forebay/array/dtype.h>

namespace forebay::histogram_detail {

/// What elements are compared as: exact for every dtype, and few.
template <class T>
using Key = std::conditional_t<
    std::is_same_v<T, Half> || std::is_same_v<T, BFloat16> || std::is_same_v<T, float>, float,
    std::conditional_t<std::is_integral_v<T> && sizeof(T) == 8, T, double>>;
template <class K>
using EdgeOf = std::conditional_t<std::is_same_v<K, float>, float, double>;

template <class T>
Key<T> key_of(T x) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    return static_cast<float>(x);
  } else {
    return static_cast<Key<T>>(x);
  }
}

/// Equally wide bins between low and high, and their edges in f64, to be rounded to the dtype of
/// the edges.
struct Range {
  double low = 0, high = 1;
  double start = 0, step = 1,
         unit = 1;  ///< halved where the difference could overflow: exact, and undone

  Range() = default;
  Range(double low_, double high_, std::int64_t bins)
      : low(low_),
        high(high_),
        unit(std::max(std::fabs(low_), std::fabs(high_)) > 0x1p1000 ? 2 : 1) {
    start = low / unit;
    step = (high / unit - start) / static_cast<double>(bins);
  }
  double edge(std::int64_t bins, std::int64_t i) const {
    if (i == 0) return low;
    if (i == bins) return high;
    return std::min((start + static_cast<double>(i) * step) * unit, high);
  }
};

/// Where values lie among equally wide bins, with one multiplication in a type P: place = x * scale
/// + shift, in bins from the lowest edge. A value whose place is farther than `doubt` from the
/// nearest whole number k is above or below edge k as its place says; else edge k, and no other,
/// has to be asked. Usable where doubt is less than half a bin.
///
/// Let u be P's unit of rounding (2^-24, 2^-53), e that of the edges, w the width, s = 1 / w, M the
/// greater magnitude of low and high. For low <= x <= high the computed place is off the true one,
/// (x - low) / w, in bins, by at most
///
///     u M s           x rounded to P
///     u bins          the scale rounded to P, and 2^-52 bins for its two operations in f64
///     u M s           shift = -low * (the rounded scale), computed in f64 and rounded
///     u M s + u bins  the product and the sum; less where they are fused
///
/// and edge i is off low + i w by at most
///
///     2^-53 (3 bins + M s)  width, product and sum in f64
///     e M s                 its own rounding
///
/// Beyond the bounds the errors that grow with x are at most a few u of its distance from the
/// nearest bound, so that it stays on its side of that edge by more than what is left of the above.
/// Exponents far from f32's ends leave all of this free of overflow and underflow.
template <class P>
struct Places {
  P scale = 0, shift = 0, doubt = 0;
  bool usable = false;

  Places() = default;
  Places(double low, double high, std::int64_t bins, Dtype edges) {
    const double count = static_cast<double>(bins),
                 most = std::max(std::fabs(low), std::fabs(high));
    const double per_unit = count / (high - low), offset = most * per_unit;
    const double unit = std::is_same_v<P, float> ? 0x1p-24 : 0x1p-53;
    const double edge_unit = edges == Dtype::f32 ? 0x1p-24 : 0x1p-53;
    const double error =
        unit * (2 * count + 3 * offset) + edge_unit * offset + 0x1p-53 * (5 * count + 2 * offset);
    usable = per_unit >= 0x1p-100 && per_unit <= 0x1p100 && most <= 0x1p100 && error < 0.48;
    if (!usable) return;
    scale = static_cast<P>(per_unit);
    shift = static_cast<P>(0 - low * static_cast<double>(scale));  // not -0
    doubt = static_cast<P>(1.01 * error + 0x1p-30);
  }
};

}  // namespace forebay::histogram_detail
