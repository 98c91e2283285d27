#include <forebay/ops/histogram/cpu_bins.h>

#include <algorithm>
#include <bit>

#include <forebay/array/dispatch.h>
#include <forebay/ops/expr/cpu_levels.h>
#include <forebay/ops/histogram/edges.h>

namespace forebay::histogram_detail {

namespace base {
BinLoops bin_loops(Dtype x);
}
#if defined(__x86_64__)
namespace v3 {
BinLoops bin_loops(Dtype x);
}
namespace v4 {
BinLoops bin_loops(Dtype x);
}
#endif

BinLoops bin_loops(Dtype x) {
#if defined(__x86_64__)
  const std::string_view level = expr::cpu_level().name;
  if (level == "v4") return v4::bin_loops(x);
  if (level == "v3") return v3::bin_loops(x);
#endif
  return base::bin_loops(x);
}

namespace {

/// The first edge above x, less one.
template <class K, class E>
std::uint32_t search(K x, const E* at, std::uint32_t bins) {
  if (is_below(x, at[0]) || is_above(x, at[bins]) || x != x) return bins;
  const E* above =
      std::partition_point(at, at + bins + 1, [x](E edge) { return !is_below(x, edge); });
  return std::min(static_cast<std::uint32_t>(above - at), bins) - 1;
}

template <class T>
void find(const Bins& bins, const void* x, std::int64_t n, std::uint32_t* found) {
  using K = Key<T>;
  using E = EdgeOf<K>;
  const T* from = static_cast<const T*>(x);
  const E* at = static_cast<const E*>(bins.at);
  if constexpr (sizeof(T) == 1) {
    if (bins.table != nullptr) {
      for (std::int64_t i = 0; i < n; ++i)
        found[i] = bins.table[std::bit_cast<std::uint8_t>(from[i])];
      return;
    }
  }
  if (bins.estimate == nullptr) {
    for (std::int64_t i = 0; i < n; ++i)
      found[i] = search(key_of(from[i]), at, bins.bins);
    return;
  }
  const void* places = bins.in_f32.usable ? static_cast<const void*>(&bins.in_f32) : &bins.in_f64;
  if ((bins.estimate(x, n, places, bins.range, bins.bins, found) & kDoubtful) == 0) return;
  for (std::int64_t i = 0; i < n; ++i) {
    if ((found[i] & kDoubtful) == 0) continue;
    const std::uint32_t edge = found[i] & ~kDoubtful;
    const K key = key_of(from[i]);
    const bool below = edge == bins.bins ? !is_above(key, at[edge]) : is_below(key, at[edge]);
    found[i] = std::min(below ? edge - 1 : edge, bins.bins);
  }
}

}  // namespace

Bins::Bins(Dtype x, const void* edges, std::int64_t count, bool equal_width)
    : at(edges), bins(static_cast<std::uint32_t>(count)) {
  if (!equal_width) return;
  const bool narrow = is_float(x) && x != Dtype::f64;
  const Dtype dtype = narrow ? Dtype::f32 : Dtype::f64;
  const auto edge = [&](std::int64_t i) {
    return narrow ? double{static_cast<const float*>(at)[i]} : static_cast<const double*>(at)[i];
  };
  range = Range(edge(0), edge(count), count);
  in_f32 = Places<float>(edge(0), edge(count), count, dtype);
  in_f32.usable &= in_f32.doubt < 0x1p-6F;  // else f64 asks fewer edges
  if (in_f32.usable) {
    estimate = bin_loops(x).in_f32;
    return;
  }
  in_f64 = Places<double>(edge(0), edge(count), count, dtype);
  if (in_f64.usable) estimate = bin_loops(x).in_f64;
}

FindBins* find_bins(Dtype x) {
  FindBins* result = nullptr;
  dispatch(RealTypesAndBool{}, x, "histogram", "x", [&]<class T>(Type<T>) { result = find<T>; });
  return result;
}

}  // namespace forebay::histogram_detail
