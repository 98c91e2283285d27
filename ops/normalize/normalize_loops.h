#pragma once

#include <array>
#include <cstdint>

#include <forebay/ops/normalize/statistics.h>

// The loops of the CPU body over elements that lie one after the other. normalize_loops.cpp is
// compiled once for each level of the processor (see ops/expr/cpu_levels.h), each time into a
// namespace of its own.
namespace forebay::normalize_detail {

/// Columns that the loops take.
inline constexpr std::int64_t kMostColumns = 2048;

/// How many values of a row-major table lie side by side in the loops: whole rows of `columns`.
constexpr std::int64_t lanes_of(std::int64_t columns) {
  return columns < 64 ? 64 / columns * columns : columns;
}

/// A value for each lane: lane i belongs to column i % columns.
template <class T>
using ByLane = std::array<T, static_cast<std::size_t>(kMostColumns)>;
template <class T, class Value>
void fill_lanes(ByLane<T>& table, std::int64_t columns, const Value& value) {
  for (std::int64_t c = 0; c < columns; ++c)
    table[static_cast<std::size_t>(c)] = value(c);
  for (std::int64_t lane = columns; lane < lanes_of(columns); ++lane)
    table[static_cast<std::size_t>(lane)] = table[static_cast<std::size_t>(lane - columns)];
}

/// ((x - high) - low) / divisor; in f64 `low` is 0.
template <class W>
struct Factors {
  W high = 0, low = 0, divisor = 1;
};
template <class W>
struct LaneFactors {
  ByLane<W> high, low, divisor;
};

/// W is float or double; sums are in f64, in an order that depends on the extents alone, so that
/// every level gives the same bits.
template <class W>
struct Loops {
  /// Of each of `rows` rows of `length` elements, one after the other: the mean and the sum of
  /// squares about it, or about `given` means; m2 only where `squares`.
  void (*moments)(const W* x, std::int64_t rows, std::int64_t length, const double* given,
                  bool squares, Moments* moments);
  /// The results of each row. `next` is the memory that will be read after this, as much of it, or
  /// null: it is fetched meanwhile.
  void (*scaled)(const W* x, std::int64_t rows, std::int64_t length, const Factors<W>* factors,
                 W* out, const W* next);
  /// Of rows of `columns` elements: adds the sum of column c to sums[c].
  void (*column_sums)(const W* x, std::int64_t rows, std::int64_t columns, double* sums);
  /// Adds the sum of (x - mean)^2.
  void (*column_squares)(const W* x, std::int64_t rows, std::int64_t columns,
                         const ByLane<double>& means, double* sums);
  void (*column_scaled)(const W* x, std::int64_t rows, std::int64_t columns,
                        const LaneFactors<W>& factors, W* out);
};

/// Those of the highest level that this machine runs: float and double.
template <class W>
const Loops<W>& loops();

}  // namespace forebay::normalize_detail
