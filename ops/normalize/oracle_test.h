#pragma once

#include <forebay/ops/normalize/normalize.h>

#include <cmath>
#include <limits>
#include <set>

#include "kit/kit.h"

// The definition of normalize in long double, for its tests.
namespace forebay::normalize_oracle {

inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Elements of a dense host array; long double holds every 64-bit integer.
inline std::vector<long double> exact_values(const Array& x) {
  std::vector<long double> values(static_cast<std::size_t>(x.count()));
  for (std::int64_t i = 0; i < x.count(); ++i) {
    auto& value = values[static_cast<std::size_t>(i)];
    if (x.dtype() == Dtype::u64)
      value = static_cast<long double>(x.as<std::uint64_t>()[i]);
    else if (x.dtype() == Dtype::i64)
      value = static_cast<long double>(x.as<std::int64_t>()[i]);
    else
      value = kit::value(x.view(), i);
  }
  return values;
}

struct Oracle {
  std::vector<double> values;
  double largest_ratio = 1;  ///< |mean| / std: how far apart the data are compared with their size
};

/// The definition, element by element, in long double.
inline Oracle oracle(const Array& x, const std::set<int>& reduced, const Normalize& settings = {}) {
  auto values = exact_values(x);
  const auto slice_of = [&](std::int64_t i) {
    std::int64_t slice = 0, step = 1;
    for (int axis = x.rank() - 1; axis >= 0; --axis) {
      if (!reduced.contains(axis)) {
        slice += i % x.shape()[axis] * step;
        step *= x.shape()[axis];
      }
      i /= x.shape()[axis];
    }
    return static_cast<std::size_t>(slice);
  };
  std::vector<std::size_t> slices(values.size());
  std::size_t count = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    slices[i] = slice_of(static_cast<std::int64_t>(i));
    count = std::max(count, slices[i] + 1);
  }
  // Distances from the first finite element of each slice: at 1e15 a long double does not hold the
  // mean itself.
  std::vector<long double> n(count), origin(count), mean(count), m2(count), divisor(count);
  for (std::size_t i = values.size(); i-- > 0;) {
    if (std::isfinite(values[i])) origin[slices[i]] = values[i];
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] -= origin[slices[i]];
    n[slices[i]] += 1;
    mean[slices[i]] += values[i];
  }
  for (std::size_t s = 0; s < count; ++s) {
    mean[s] /= n[s];
    if (settings.mean)
      mean[s] = settings.mean->values[s % settings.mean->values.size()] - origin[s];
  }
  for (std::size_t i = 0; i < values.size(); ++i)
    m2[slices[i]] += (values[i] - mean[slices[i]]) * (values[i] - mean[slices[i]]);
  Oracle result;
  for (std::size_t s = 0; s < count; ++s) {
    const long double free = n[s] - static_cast<long double>(settings.ddof);
    long double std = free > 0 ? std::sqrt(m2[s] / free) : kNaN;
    if (settings.std) std = settings.std->values[s % settings.std->values.size()];
    const long double epsilon = settings.epsilon;
    switch (settings.epsilon_place) {
      case EpsilonPlace::variance:
        divisor[s] = epsilon > 0 ? std::sqrt(std * std + epsilon) : std;
        break;
      case EpsilonPlace::std:
        divisor[s] = std + epsilon;
        break;
      case EpsilonPlace::floor:
        divisor[s] = std < epsilon ? epsilon : std;
        break;
    }
    if (divisor[s] > 0) {
      result.largest_ratio = std::max(
          result.largest_ratio, static_cast<double>(std::fabs(mean[s] + origin[s]) / divisor[s]));
    }
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    const long double d = divisor[slices[i]];
    const bool zero = d == 0 && settings.zero_std == ZeroStd::zero;
    result.values.push_back(zero ? 0 : static_cast<double>((values[i] - mean[slices[i]]) / d));
  }
  return result;
}

/// The bounds that README.md states.
inline testing::AssertionResult within_bounds(const Array& got, const Oracle& want) {
  switch (got.dtype()) {
    case Dtype::f64:
      return kit::near(got, want.values, 0x1p-40, 0x1p-40);
    case Dtype::f16:
      return kit::near(got, want.values, 0x1p-11 + 0x1p-21, 0x1p-25 + 0x1p-45 * want.largest_ratio);
    case Dtype::bf16:
      return kit::near(got, want.values, 0x1p-8 + 0x1p-21, 0x1p-45 * want.largest_ratio);
    default:
      return kit::near(got, want.values, 0x1p-22, 0x1p-45 * want.largest_ratio);
  }
}

}  // namespace forebay::normalize_oracle
