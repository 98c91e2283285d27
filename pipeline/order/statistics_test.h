#pragma once

// What tests of random orders share.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include <forebay/pipeline/order/order.h>
#include <gtest/gtest.h>

namespace forebay::test {

/// The upper 1e-6 quantile of chi-square, by the Wilson-Hilferty approximation.
inline double chi_square_bound(double freedom) {
  const double a = 2 / (9 * freedom);
  return freedom * std::pow(1 - a + 4.7534 * std::sqrt(a), 3);
}

/// Of counts that were all expected to be `expected`.
inline double chi_square(const std::vector<double>& counts, double expected) {
  double sum = 0;
  for (const double count : counts)
    sum += (count - expected) * (count - expected) / expected;
  return sum;
}

inline std::vector<std::int64_t> samples_of(const Order& order, std::int64_t epoch,
                                            std::int64_t first = 0, std::int64_t count = -1) {
  std::vector<std::int64_t> samples(
      static_cast<std::size_t>(count < 0 ? order.length() - first : count));
  order.samples(epoch, first, samples);
  return samples;
}

inline std::vector<std::int64_t> count_up(std::int64_t size) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(size));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

inline std::vector<std::int64_t> sorted(std::vector<std::int64_t> numbers) {
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

/// Asking for a part of an epoch gives that part of it, wherever it begins and ends.
inline void expect_parts_fit(const Order& order, std::int64_t epoch) {
  const std::vector<std::int64_t> whole = samples_of(order, epoch);
  for (std::int64_t first = 0; first <= order.length(); ++first) {
    for (const std::int64_t count : {std::int64_t{1}, std::int64_t{5}, order.length()}) {
      const std::int64_t rest = std::min(count, order.length() - first);
      EXPECT_EQ(samples_of(order, epoch, first, rest),
                std::vector<std::int64_t>(whole.begin() + first, whole.begin() + first + rest));
    }
  }
}

}  // namespace forebay::test
