#pragma once

#include <cmath>
#include <set>
#include <vector>

#include "kit/kit.h"

// The law, for tests: a search of every value in the edges that were returned.
namespace forebay::histogram_oracle {

/// Element i of a dense host array; long double holds every 64-bit integer.
inline long double exact(const Array& x, std::int64_t i) {
  if (x.dtype() == Dtype::u64) return static_cast<long double>(x.as<std::uint64_t>()[i]);
  if (x.dtype() == Dtype::i64) return static_cast<long double>(x.as<std::int64_t>()[i]);
  return kit::value(x.view(), i);
}

struct Counts {
  std::vector<double> hist;  ///< counts, or sums of weights
  std::vector<double> ignored;
};

/// The law: a search of each value in the edges that were returned, one slice for each index of the
/// kept axes.
inline Counts search(const Array& x, const Array& edges, const std::set<int>& counted,
                     const Array* weights = nullptr) {
  const std::int64_t bins = edges.shape()[edges.rank() - 1] - 1;
  std::int64_t slices = 1;
  for (int axis = 0; axis < x.rank(); ++axis)
    slices *= counted.contains(axis) ? 1 : x.shape()[axis];
  std::vector<long double> sums(static_cast<std::size_t>(slices * bins));
  Counts counts;
  counts.ignored.resize(static_cast<std::size_t>(slices));
  for (std::int64_t i = 0; i < x.count(); ++i) {
    std::int64_t slice = 0, step = 1, rest = i;
    for (int axis = x.rank() - 1; axis >= 0; --axis) {
      if (!counted.contains(axis)) {
        slice += rest % x.shape()[axis] * step;
        step *= x.shape()[axis];
      }
      rest /= x.shape()[axis];
    }
    const std::int64_t first = edges.count() == bins + 1 ? 0 : slice * (bins + 1);
    const long double value = exact(x, i);
    std::int64_t low = 0, high = bins + 1;  // the number of edges that are not above the value
    while (low < high) {
      const std::int64_t middle = (low + high) / 2;
      if (exact(edges, first + middle) <= value)
        low = middle + 1;
      else
        high = middle;
    }
    if (value == exact(edges, first + bins)) low = bins;
    if (std::isnan(value) || low == 0 || low == bins + 1) {
      counts.ignored[static_cast<std::size_t>(slice)] += 1;
    } else {
      sums[static_cast<std::size_t>(slice * bins + low - 1)] +=
          weights != nullptr ? exact(*weights, i) : 1;
    }
  }
  counts.hist.assign(sums.begin(), sums.end());
  return counts;
}

}  // namespace forebay::histogram_oracle
