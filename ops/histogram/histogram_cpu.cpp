#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include <forebay/array/dispatch.h>
#include <forebay/array/parallel.h>
#include <forebay/ops/histogram/edges.h>

// Units of slices.h count into memory of their own, which is then merged in order: counts would be
// the same in any order, sums of weights would not.
namespace forebay {
namespace {

using namespace histogram_detail;  // NOLINT(google-build-using-namespace): the other half of this
                                   // file

constexpr std::int64_t kTileElements = 4096;
constexpr std::int64_t kUnitElements = 65536;
constexpr std::int64_t kMostColumns = 256;
constexpr std::int64_t kCachedCounters = 4096;

/// What elements are compared as: exact for every dtype, and few, so that little code is compiled
/// per dtype.
template <class T>
using Key = std::conditional_t<
    std::is_same_v<T, Half> || std::is_same_v<T, BFloat16> || std::is_same_v<T, float>, float,
    std::conditional_t<std::is_integral_v<T> && sizeof(T) == 8, T, double>>;

template <class To>
using Load = void (*)(const void* from, std::int64_t offset, std::int64_t count, To* to);

template <class T, class To>
void load(const void* from, std::int64_t offset, std::int64_t count, To* to) {
  const T* x = static_cast<const T*>(from) + offset;
  for (std::int64_t i = 0; i < count; ++i) {
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
      to[i] = static_cast<float>(x[i]);
    } else {
      to[i] = static_cast<To>(x[i]);
    }
  }
}

/// The edges of one histogram, ready for a search.
template <class E>
struct Edges {
  const E* at;
  std::int64_t bins;
  bool uniform;  ///< a multiplication comes near the bin
  double low;
  double scale;

  Edges() = default;
  Edges(const E* edges, std::int64_t count, bool equal_width)
      : at(edges),
        bins(count),
        low(static_cast<double>(edges[0])),
        scale(static_cast<double>(count) / (static_cast<double>(edges[count]) - low)) {
    uniform = equal_width && std::isfinite(scale) && scale > 0;
  }

  /// The bin of x; `bins` for what is ignored.
  template <class K>
  std::int64_t find(K x) const {
    if (is_below(x, at[0]) || is_above(x, at[bins]) || x != x) return bins;
    if (!uniform) {
      const E* above =
          std::partition_point(at, at + bins + 1, [x](E edge) { return !is_below(x, edge); });
      return std::min<std::int64_t>(above - at, bins) - 1;
    }
    const double place = (static_cast<double>(x) - low) * scale;
    auto bin = std::clamp<std::int64_t>(static_cast<std::int64_t>(place), 0, bins - 1);
    while (bin > 0 && is_below(x, at[bin]))
      --bin;
    while (bin + 1 < bins && !is_below(x, at[bin + 1]))
      ++bin;
    return bin;
  }
};

template <class K>
struct Extremes {
  K least = std::numeric_limits<K>::max();
  K greatest = std::numeric_limits<K>::lowest();
  void add(K x) {
    if constexpr (std::is_floating_point_v<K>) {
      if (!std::isfinite(x)) return;
    }
    least = std::min(least, x);
    greatest = std::max(greatest, x);
  }
  void add(const Extremes& other) {
    least = std::min(least, other.least);
    greatest = std::max(greatest, other.greatest);
  }
};

template <class K>
class HistogramCpu final : public Body {
  using E = std::conditional_t<std::is_same_v<K, float>, float, double>;

 public:
  HistogramCpu(const Histogram& settings, const Problem& problem, Load<K> load_keys)
      : plan_(plan_edges(settings, problem.inputs[0].dtype)),
        density_(settings.density),
        weighted_(problem.inputs.size() > 1),
        slices_(
            slices_of(problem.inputs[0].shape, counted_axes(settings, problem.inputs[0].shape))),
        load_keys_(load_keys) {
    const std::int64_t columns =
        std::clamp<std::int64_t>(kCachedCounters / (plan_.bins + 1), 1, kMostColumns);
    const std::int64_t chunk = std::min(columns, slices_.columns);
    // At least four values a counter, so that the counters of all units stay smaller than a few
    // times the data.
    tiling_ =
        tile(slices_, columns,
             std::max(kUnitElements / std::max<std::int64_t>(chunk, 1), 4 * (plan_.bins + 1)));
    if (weighted_) {
      dispatch(RealTypesAndBool{}, problem.inputs[1].dtype, "histogram", "weights",
               [&]<class T>(Type<T>) { load_weights_ = load<T, double>; });
    }
  }

  std::size_t scratch_bytes() const override {
    return static_cast<std::size_t>(8 * edge_sets() * (plan_.bins + 1)) +
           sizeof(Extremes<K>) * columns_of_units() +
           8 * columns_of_units() * static_cast<std::size_t>(plan_.bins + 1);
  }

  void run(std::span<const ArrayView> inputs, std::span<const ArrayView> outputs,
           const Launch& launch) override {
    auto* edges = static_cast<E*>(launch.scratch);
    auto* extremes = reinterpret_cast<Extremes<K>*>(static_cast<char*>(launch.scratch) +
                                                    8 * edge_sets() * (plan_.bins + 1));
    void* counters = extremes + columns_of_units();
    const void* x = inputs[0].data;

    if (plan_.kind == EdgePlan::Kind::inferred) find_extremes(x, extremes);
    parallel_for(edge_sets(), 1 + kTileElements / plan_.bins,
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t set = begin; set < end; ++set)
                     make_edges(extremes, set, edges + set * (plan_.bins + 1));
                 });
    if (outputs[1].data != nullptr) std::memcpy(outputs[1].data, edges, outputs[1].bytes());
    if (weighted_) {
      count<double>(x, inputs[1].data, edges, static_cast<double*>(counters), outputs);
    } else {
      count<std::int64_t>(x, nullptr, edges, static_cast<std::int64_t*>(counters), outputs);
    }
  }

 private:
  std::int64_t edge_sets() const {
    return plan_.kind == EdgePlan::Kind::inferred ? slices_.count() : 1;
  }
  std::size_t columns_of_units() const {
    return static_cast<std::size_t>(tiling_.units(slices_) * tiling_.chunk);
  }
  /// The unit that has the slice's first block, and the slice's column in it.
  std::pair<std::int64_t, std::int64_t> place_of(std::int64_t slice) const {
    const std::int64_t group = slice / slices_.columns, column = slice % slices_.columns;
    return {(group * tiling_.chunks + column / tiling_.chunk) * tiling_.blocks,
            column % tiling_.chunk};
  }

  template <class Visit>
  void for_units(Visit&& visit) const {
    const std::int64_t elements =
        std::max<std::int64_t>(1, tiling_.chunk * std::min(tiling_.block, slices_.length()));
    parallel_for(tiling_.units(slices_), std::max<std::int64_t>(1, kTileElements / elements),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t i = begin; i < end; ++i)
                     visit(i, unit_of(slices_, tiling_, i));
                 });
  }

  /// Calls visit(offset, rows) for pieces of the unit that lie dense and fit a tile.
  template <class Visit>
  void for_tiles(const Unit& unit, Visit&& visit) const {
    const std::int64_t most = kTileElements / unit.columns;
    for_dense_runs(slices_, unit, unit.first, unit.last,
                   [&](std::int64_t offset, std::int64_t rows) {
                     for (std::int64_t row = 0; row < rows; row += most)
                       visit(offset + row * unit.columns, std::min(most, rows - row));
                   });
  }

  void find_extremes(const void* x, Extremes<K>* extremes) const {
    for_units([&](std::int64_t i, const Unit& unit) {
      Extremes<K>* mine = extremes + i * tiling_.chunk;
      std::fill_n(mine, unit.columns, Extremes<K>{});
      std::array<K, kTileElements> keys;
      for_tiles(unit, [&](std::int64_t offset, std::int64_t rows) {
        load_keys_(x, offset, rows * unit.columns, keys.data());
        const K* key = keys.data();
        for (std::int64_t row = 0; row < rows; ++row) {
          for (std::int64_t c = 0; c < unit.columns; ++c)
            mine[c].add(*key++);
        }
      });
    });
  }

  void make_edges(const Extremes<K>* extremes, std::int64_t set, E* edges) const {
    const std::int64_t bins = plan_.bins;
    E low = static_cast<E>(plan_.low), high = static_cast<E>(plan_.high);
    if (plan_.kind == EdgePlan::Kind::table) {
      for (std::int64_t i = 0; i <= bins; ++i)
        edges[i] = static_cast<E>(plan_.table[static_cast<std::size_t>(i)]);
      return;
    }
    if (plan_.kind == EdgePlan::Kind::inferred) {
      const auto [first, column] = place_of(set);
      Extremes<K> all;
      for (std::int64_t b = 0; b < tiling_.blocks; ++b)
        all.add(extremes[(first + b) * tiling_.chunk + column]);
      if (all.least <= all.greatest) {
        low = edge_below<E>(all.least);
        high = edge_above<E>(all.greatest);
        widen(low, high);
      }
    }
    for (std::int64_t i = 0; i <= bins; ++i) {
      edges[i] =
          static_cast<E>(edge_at(static_cast<double>(low), static_cast<double>(high), bins, i));
    }
  }

  /// `counters` has, for each column of each unit, one A for each bin and one for what is ignored.
  template <class A>
  void count(const void* x, const void* weights, const E* edges, A* counters,
             std::span<const ArrayView> outputs) const {
    const std::int64_t bins = plan_.bins;
    for_units([&](std::int64_t i, const Unit& unit) {
      A* mine = counters + i * tiling_.chunk * (bins + 1);
      std::fill_n(mine, unit.columns * (bins + 1), A{0});
      std::array<Edges<E>, kMostColumns> searches;
      for (std::int64_t c = 0; c < unit.columns; ++c) {
        const std::int64_t set = edge_sets() == 1 ? 0 : unit.slice + c;
        searches[c] = Edges<E>(edges + set * (bins + 1), bins, plan_.kind != EdgePlan::Kind::table);
      }
      std::array<K, kTileElements> keys;
      std::array<double, kTileElements> tile_weights;
      for_tiles(unit, [&](std::int64_t offset, std::int64_t rows) {
        load_keys_(x, offset, rows * unit.columns, keys.data());
        if (weights != nullptr)
          load_weights_(weights, offset, rows * unit.columns, tile_weights.data());
        std::int64_t k = 0;
        for (std::int64_t row = 0; row < rows; ++row) {
          for (std::int64_t c = 0; c < unit.columns; ++c, ++k) {
            const std::int64_t bin = searches[c].find(keys[k]);
            mine[c * (bins + 1) + bin] +=
                std::is_same_v<A, double> && bin < bins ? static_cast<A>(tile_weights[k]) : A{1};
          }
        }
      });
    });
    parallel_for(
        slices_.count(), 1 + kTileElements / bins, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t slice = begin; slice < end; ++slice) {
            finish(slice, edges + (edge_sets() == 1 ? 0 : slice * (bins + 1)), counters, outputs);
          }
        });
  }

  template <class A>
  void finish(std::int64_t slice, const E* edges, const A* counters,
              std::span<const ArrayView> outputs) const {
    const std::int64_t bins = plan_.bins;
    const auto [first, column] = place_of(slice);
    const auto total = [&, unit = first, c = column](std::int64_t bin) {
      A sum = 0;
      for (std::int64_t b = 0; b < tiling_.blocks; ++b)
        sum += counters[((unit + b) * tiling_.chunk + c) * (bins + 1) + bin];
      return sum;
    };
    if (outputs[2].data != nullptr)
      outputs[2].as<std::int64_t>()[slice] = static_cast<std::int64_t>(total(bins));
    if (outputs[0].data == nullptr) return;
    if (!weighted_ && !density_) {
      for (std::int64_t i = 0; i < bins; ++i)
        outputs[0].as<std::int64_t>()[slice * bins + i] = static_cast<std::int64_t>(total(i));
      return;
    }
    double* hist = outputs[0].as<double>() + slice * bins;
    A sum = 0;
    for (std::int64_t i = 0; i < bins; ++i) {
      const A in_bin = total(i);
      sum += in_bin;
      hist[i] = static_cast<double>(in_bin);
    }
    if (!density_) return;
    for (std::int64_t i = 0; i < bins; ++i) {
      hist[i] = hist[i] / (static_cast<double>(edges[i + 1]) - static_cast<double>(edges[i])) /
                static_cast<double>(sum);
    }
  }

  EdgePlan plan_;
  bool density_;
  bool weighted_;
  Slices slices_;
  Tiling tiling_;
  Load<K> load_keys_;
  Load<double> load_weights_ = nullptr;
};

}  // namespace

std::unique_ptr<Body> histogram_cpu(const Op& op, const Problem& problem, const Context&) {
  std::unique_ptr<Body> body;
  dispatch(RealTypesAndBool{}, problem.inputs[0].dtype, "histogram", "x", [&]<class T>(Type<T>) {
    body =
        std::make_unique<HistogramCpu<Key<T>>>(op.settings<Histogram>(), problem, load<T, Key<T>>);
  });
  return body;
}

}  // namespace forebay
