#pragma once

// What the tests of random ops share: draws, the words that they are of, and statistics.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include <forebay/array/philox.h>
#include <forebay/ops/random.h>
#include "kit/kit.h"

namespace forebay::test {

/// Of samples ids[0], ids[1], ..
inline Draw draw_of(const std::vector<std::int64_t>& ids, const Context& context,
                    std::int64_t epoch = 3, std::uint64_t seed = 0x123456789ABCDEF0) {
  const Array host = Array::from<std::int64_t>({std::ssize(ids)}, ids);
  return {.seed = seed, .epoch = epoch, .sample_ids = kit::to_device(host, context)};
}
/// Of samples first .. first + count.
inline Draw draw_of(std::int64_t count, const Context& context, std::int64_t first = 0,
                    std::int64_t epoch = 3, std::uint64_t seed = 0x123456789ABCDEF0) {
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < count; ++i)
    ids.push_back(first + i);
  return draw_of(ids, context, epoch, seed);
}

/// The word of random.h, said once more: op number `draws`.
inline std::uint32_t word_of(int draws, int stream, std::uint64_t seed, std::int64_t epoch,
                             std::int64_t sample, std::int64_t word) {
  const auto op = static_cast<std::uint32_t>(draws * 256 + stream);
  return philox(
      {static_cast<std::uint32_t>(word / 4), static_cast<std::uint32_t>(epoch),
       static_cast<std::uint32_t>(sample), static_cast<std::uint32_t>(sample >> 32) | op << 16},
      seed)[static_cast<std::size_t>(word % 4)];
}

struct Moments {
  double mean = 0, variance = 0, skewness = 0, kurtosis = 0;
};
inline Moments moments_of(const std::vector<double>& x) {
  Moments m;
  const auto n = static_cast<double>(x.size());
  for (const double value : x)
    m.mean += value / n;
  double third = 0, fourth = 0;
  for (const double value : x) {
    const double d = value - m.mean;
    m.variance += d * d / n;
    third += d * d * d / n;
    fourth += d * d * d * d / n;
  }
  m.skewness = third / std::pow(m.variance, 1.5);
  m.kurtosis = fourth / (m.variance * m.variance);
  return m;
}

/// sqrt(n) times the largest distance between the share of values below each x and `below(x)`
/// (Kolmogorov and Smirnov): above 2.7 once in a million times.
inline double distance_of(std::vector<double> x, const std::function<double(double)>& below) {
  std::sort(x.begin(), x.end());
  const auto n = static_cast<double>(x.size());
  double most = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double p = below(x[i]);
    most = std::max({most, p - static_cast<double>(i) / n, static_cast<double>(i + 1) / n - p});
  }
  return most * std::sqrt(n);
}
inline constexpr double kMostDistance = 2.7;

/// sqrt(n) times the correlation: as a standard normal number where there is none.
inline double correlation_of(const std::vector<double>& x, const std::vector<double>& y) {
  const Moments a = moments_of(x), b = moments_of(y);
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    sum += (x[i] - a.mean) * (y[i] - b.mean);
  return sum / std::sqrt(a.variance * b.variance * static_cast<double>(x.size()));
}
inline constexpr double kMostCorrelation = 5;

}  // namespace forebay::test
