#include <bit>
#include <limits>
#include <type_traits>

#include <forebay/ops/expr/cpu_loops.h>
#include <forebay/ops/histogram/cpu_bins.h>

// Compiled once for each level of the processor, as the loops of expr/.
namespace forebay::histogram_detail::FOREBAY_CPU_LEVEL {
namespace {

/// Adding 1.5 * 2^23 (2^52) to a place rounds it to a whole number, the low bits of the sum.
template <class P>
struct Whole;
template <>
struct Whole<float> {
  using Bits = std::uint32_t;
  static constexpr float kAdd = 0x1.8p23F;
};
template <>
struct Whole<double> {
  using Bits = std::uint64_t;
  static constexpr double kAdd = 0x1.8p52;
};

constexpr std::int64_t kBlock = 64;  // elements that doubt in one of them makes a second pass over

template <class T>
constexpr bool kIsWide = std::is_integral_v<T> && sizeof(T) == 8;

template <class T, class P>
std::uint32_t estimate_block(const T* __restrict x, std::int64_t n, const Places<P>& places,
                             std::uint32_t bins, std::uint32_t* __restrict found) {
  using Bits = typename Whole<P>::Bits;
  constexpr P kAdd = Whole<P>::kAdd;
  const P scale = places.scale, shift = places.shift, doubt = places.doubt;
  std::uint32_t any = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const P place = static_cast<P>(expr::load(x[i])) * scale + shift;
    const P sum = place + kAdd;
    const P above = place - (sum - kAdd);
    const Bits edge = std::bit_cast<Bits>(sum) - std::bit_cast<Bits>(kAdd);
    const Bits bin = above < 0 ? edge - 1 : edge;
    const auto sure = static_cast<std::uint32_t>(bin < bins ? bin : bins);
    const bool near = (above < 0 ? -above : above) <= doubt && edge <= bins;
    const std::uint32_t result = near ? static_cast<std::uint32_t>(edge) | kDoubtful : sure;
    any |= result;
    found[i] = result;
  }
  return any;
}

/// The edges are computed again, as all were: quicker than to look them up.
template <class T>
void ask_edges(const T* __restrict x, std::int64_t n, const Range& range, std::uint32_t bins,
               std::uint32_t* __restrict found) {
  using K = Key<decltype(expr::load(T{}))>;
  const double low = range.low, high = range.high, start = range.start, step = range.step,
               unit = range.unit;
  const auto last = static_cast<std::int32_t>(bins);
  for (std::int64_t i = 0; i < n; ++i) {
    const auto edge = static_cast<std::int32_t>(found[i] & ~kDoubtful);
    const double inner = (start + static_cast<double>(edge) * step) * unit;
    const double up_to_high = inner < high && edge != last ? inner : high;
    const auto there = static_cast<EdgeOf<K>>(edge == 0 ? low : up_to_high);
    const auto key = static_cast<K>(expr::load(x[i]));
    const bool below = (key < there) | ((key == there) & (edge == last));
    const auto bin = static_cast<std::uint32_t>(below ? edge - 1 : edge);
    const std::uint32_t asked = bin < bins ? bin : bins;
    found[i] = (found[i] & kDoubtful) != 0 ? asked : found[i];
  }
}

template <class T, class P>
std::uint32_t estimate(const void* x, std::int64_t n, const void* places, const Range& range,
                       std::uint32_t bins, std::uint32_t* found) {
  const T* from = static_cast<const T*>(x);
  std::uint32_t all = 0;
  for (std::int64_t first = 0; first < n; first += kBlock) {
    const std::int64_t count = n - first < kBlock ? n - first : kBlock;
    const std::uint32_t any = estimate_block(
        from + first, count, *static_cast<const Places<P>*>(places), bins, found + first);
    if ((any & kDoubtful) == 0) continue;
    if constexpr (kIsWide<T>) {
      all |= any;
    } else {
      ask_edges(from + first, count, range, bins, found + first);
    }
  }
  return all & kDoubtful;
}

/// In lanes, whose order the compiler need not change.
template <class T>
void extremes(const void* x, std::int64_t n, void* least, void* greatest) {
  using K = Key<decltype(expr::load(T{}))>;
  constexpr std::int64_t kLanes = 32;
  constexpr K kMost = std::numeric_limits<K>::max();
  const T* from = static_cast<const T*>(x);
  K low[kLanes], high[kLanes];
  for (std::int64_t lane = 0; lane < kLanes; ++lane) {
    low[lane] = *static_cast<K*>(least);
    high[lane] = *static_cast<K*>(greatest);
  }
  const auto add = [&](K key, std::int64_t lane) {
    if constexpr (std::is_floating_point_v<K>) {
      const bool finite = key <= kMost && key >= -kMost;
      low[lane] = finite && key < low[lane] ? key : low[lane];
      high[lane] = finite && key > high[lane] ? key : high[lane];
    } else {
      low[lane] = key < low[lane] ? key : low[lane];
      high[lane] = key > high[lane] ? key : high[lane];
    }
  };
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane)
      add(static_cast<K>(expr::load(from[i + lane])), lane);
  }
  for (; i < n; ++i)
    add(static_cast<K>(expr::load(from[i])), 0);
  for (std::int64_t lane = 0; lane < kLanes; ++lane) {
    *static_cast<K*>(least) =
        low[lane] < *static_cast<K*>(least) ? low[lane] : *static_cast<K*>(least);
    *static_cast<K*>(greatest) =
        high[lane] > *static_cast<K*>(greatest) ? high[lane] : *static_cast<K*>(greatest);
  }
}

template <class... T>
BinLoops loops(Dtype x, Types<T...>) {
  BinLoops result;
  (void)((x == dtype_of<T> &&
          (result = {estimate<T, float>, estimate<T, double>, extremes<T>}, true)) ||
         ...);
  return result;
}

using Elements =
    Types<expr::Bool, std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t, std::int8_t,
          std::int16_t, std::int32_t, std::int64_t, Half, BFloat16, float, double>;

}  // namespace

BinLoops bin_loops(Dtype x) { return loops(x, Elements{}); }

}  // namespace forebay::histogram_detail::FOREBAY_CPU_LEVEL
