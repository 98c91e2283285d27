#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include <forebay/ops/histogram/histogram.h>
#include <forebay/ops/histogram/places.h>

// What the bodies of histogram share. histogram.cu has the same formulas.
namespace forebay::histogram_detail {

/// Where edges come from.
struct EdgePlan {
  enum class Kind : std::uint8_t { range, inferred, table };
  Kind kind = Kind::inferred;
  Dtype dtype = Dtype::f64;  ///< f32 or f64
  std::int64_t bins = 10;
  double low = 0, high = 1;   ///< range: rounded to dtype and apart
  std::vector<double> table;  ///< table: rounded to dtype
};

/// Errors: invalid, as `histogram` says.
EdgePlan plan_edges(const Histogram& settings, Dtype x);

/// The edges of a range or a table, as they are returned.
std::vector<double> all_edges(const EdgePlan& plan);

AxisSet counted_axes(const Histogram& settings, const Dims& shape);

/// Moves equal bounds apart, in the arithmetic of the edges.
template <class E>
void widen(E& low, E& high) {
  if (low != high) return;
  low -= E(0.5);
  high += E(0.5);
}

// Exact comparison of a value with an edge, which is not NaN. NaN is neither below nor above.
template <class E>
bool is_below(E x, E edge) {
  return x < edge;
}
template <class E>
bool is_above(E x, E edge) {
  return x > edge;
}
inline bool is_below(std::int64_t x, double edge) {
  return edge >= 0x1p63 || (edge > -0x1p63 && x < static_cast<std::int64_t>(std::ceil(edge)));
}
inline bool is_above(std::int64_t x, double edge) {
  return edge < -0x1p63 || (edge < 0x1p63 && x > static_cast<std::int64_t>(std::floor(edge)));
}
inline bool is_below(std::uint64_t x, double edge) {
  return edge >= 0x1p64 || (edge > 0 && x < static_cast<std::uint64_t>(std::ceil(edge)));
}
inline bool is_above(std::uint64_t x, double edge) {
  return edge < 0 || (edge < 0x1p64 && x > static_cast<std::uint64_t>(std::floor(edge)));
}

/// The greatest edge not above x, and the least not below it. f64 does not hold every 64-bit
/// integer.
template <class E, class K>
E edge_below(K x) {
  const E edge = static_cast<E>(x);
  return is_below(x, edge) ? std::nextafter(edge, -HUGE_VAL) : edge;
}
template <class E, class K>
E edge_above(K x) {
  const E edge = static_cast<E>(x);
  return is_above(x, edge) ? std::nextafter(edge, HUGE_VAL) : edge;
}

}  // namespace forebay::histogram_detail
