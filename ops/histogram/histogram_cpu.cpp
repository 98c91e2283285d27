#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <type_traits>

#include <forebay/array/dispatch.h>
#include <forebay/array/parallel.h>
#include <forebay/ops/expr/cpu_levels.h>
#include <forebay/ops/expr/tile.h>
#include <forebay/ops/histogram/cpu_bins.h>
#include <forebay/ops/histogram/cpu_units.h>
#include <forebay/ops/histogram/edges.h>

// Units of slices.h count into memory of their own, which is then merged in order: counts would be
// the same in any order, sums of weights would not.
namespace forebay {
namespace {

using namespace histogram_detail;  // NOLINT(google-build-using-namespace): the other half of this
                                   // file

constexpr std::int64_t kTileElements = CpuUnits::kTileElements;
constexpr std::int64_t kStepElements = 256;  // whose bins are found before they are counted
constexpr std::int64_t kUnitElements = 131072;
constexpr std::int64_t kMostColumns = 256;
constexpr std::int64_t kCountedValues = 2048;  // of 8 bits, to be worth 256 counters
constexpr std::int64_t kCachedCounters = 8192;

using Convert = void(const void* from, std::int64_t count, double* to);

template <class T>
void convert(const void* from, std::int64_t count, double* to) {
  const T* x = static_cast<const T*>(from);
  for (std::int64_t i = 0; i < count; ++i)
    to[i] = static_cast<double>(key_of(x[i]));
}

template <class K>
struct Extremes {
  K least = std::numeric_limits<K>::max();
  K greatest = std::numeric_limits<K>::lowest();
  void add(const Extremes& other) {
    least = std::min(least, other.least);
    greatest = std::max(greatest, other.greatest);
  }
};

/// Counts in `Copies` counters a bin in turn, so that an addition does not wait for the one before it,
/// to the same counter.
template <int Copies, class Index>
void count_in_turn(const Index* found, std::int64_t n, std::uint32_t* counters) {
  std::int64_t i = 0;
  for (; i + Copies <= n; i += Copies) {
    for (int copy = 0; copy < Copies; ++copy)
      ++counters[std::size_t{found[i + copy]} * Copies + static_cast<std::size_t>(copy)];
  }
  for (; i < n; ++i)
    ++counters[std::size_t{found[i]} * Copies];
}

/// What runs of one body share: where the data are, and the edges.
template <class E>
struct Job {
  std::span<const ArrayView> inputs, outputs;
  const E* edges;
  void* counters;
};

template <class K>
class HistogramCpu final : public Body {
  using E = EdgeOf<K>;

 public:
  HistogramCpu(const Histogram& settings, const Problem& problem)
      : plan_(plan_edges(settings, problem.inputs[0].dtype)),
        density_(settings.density),
        weighted_(problem.inputs.size() > 1),
        x_(problem.inputs[0].dtype),
        units_{slices_of(problem.inputs[0].shape, counted_axes(settings, problem.inputs[0].shape)),
               {}},
        load_x_(problem.load(0)),
        find_(find_bins(x_)) {
    const std::int64_t columns =
        std::clamp<std::int64_t>(kCachedCounters / (plan_.bins + 1), 1, kMostColumns);
    const std::int64_t chunk = std::min(columns, units_.slices.columns);
    // At least four values a counter, so that the counters of all units stay smaller than a few
    // times the data.
    units_.tiling =
        tile(units_.slices, columns,
             std::max(kUnitElements / std::max<std::int64_t>(chunk, 1), 4 * (plan_.bins + 1)));
    const std::int64_t row = units_.tiling.chunk * (plan_.bins + 1);
    if (!weighted_ && row <= kCachedCounters)
      copies_ = units_.tiling.chunk > 1 || 4 * row > kCachedCounters ? 1
                : 8 * row > kCachedCounters                          ? 4
                                                                     : 8;
    if (plan_.kind != EdgePlan::Kind::inferred) {
      const std::vector<double> edges = all_edges(plan_);
      edges_.assign(edges.begin(), edges.end());
    }
    if (size_of(x_) == 1 && !edges_.empty()) make_table();
    if (!weighted_) return;
    load_weights_.emplace(problem.load(1));
    dispatch(RealTypesAndBool{}, problem.inputs[1].dtype, "histogram", "weights",
             [&]<class T>(Type<T>) { convert_weights_ = convert<T>; });
  }

  std::size_t scratch_bytes() const override {
    return edge_bytes() + sizeof(Extremes<K>) * units_.columns_of_units() +
           (is_direct() ? 0
                        : 8 * units_.columns_of_units() * static_cast<std::size_t>(plan_.bins + 1));
  }

  void run(std::span<const ArrayView> inputs, std::span<const ArrayView> outputs,
           const Launch& launch) override {
    const std::int64_t bins = plan_.bins;
    const E* edges = edges_.data();
    auto* extremes =
        reinterpret_cast<Extremes<K>*>(static_cast<char*>(launch.scratch) + edge_bytes());
    if (plan_.kind == EdgePlan::Kind::inferred) {
      E* found = static_cast<E*>(launch.scratch);
      edges = found;
      find_extremes(inputs, extremes);
      parallel_for(edge_sets(), 1 + kTileElements / bins,
                   [&](std::int64_t begin, std::int64_t end) {
                     for (std::int64_t set = begin; set < end; ++set)
                       make_edges(extremes, set, found + set * (bins + 1));
                   });
    }
    if (outputs[1].data != nullptr) std::memcpy(outputs[1].data, edges, outputs[1].bytes());
    const Job<E> job{inputs, outputs, edges, extremes + units_.columns_of_units()};
    if (weighted_) {
      count<double>(job);
    } else {
      count<std::int64_t>(job);
    }
  }

 private:
  std::int64_t edge_sets() const {
    return plan_.kind == EdgePlan::Kind::inferred ? units_.slices.count() : 1;
  }
  std::size_t edge_bytes() const {
    return plan_.kind == EdgePlan::Kind::inferred
               ? static_cast<std::size_t>(8 * edge_sets() * (plan_.bins + 1))
               : 0;
  }
  /// Whether each slice is counted by one unit, in counters that need no scratch.
  bool is_direct() const { return units_.tiling.blocks == 1 && copies_ > 0; }
  void make_table() {
    const Bins bins(x_, edges_.data(), plan_.bins, false);
    std::array<std::uint8_t, 256> values;
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<std::uint8_t>(x_ == Dtype::boolean ? i != 0 : i);
    table_.resize(values.size());
    find_(bins, values.data(), 256, table_.data());
  }

  void find_extremes(std::span<const ArrayView> inputs, Extremes<K>* extremes) const {
    ExtremesLoop* loop = bin_loops(x_).extremes;
    units_.for_units([&](std::int64_t i, const Unit& unit) {
      Extremes<K>* mine = extremes + i * units_.tiling.chunk;
      std::fill_n(mine, unit.columns, Extremes<K>{});
      std::array<std::uint64_t, kTileElements> room, column;
      units_.for_tiles(unit, [&](std::int64_t offset, std::int64_t rows) {
        const void* x = load_x_.load(inputs, offset, rows * unit.columns, room.data());
        for (std::int64_t c = 0; c < unit.columns; ++c) {
          const void* from =
              unit.columns == 1 ? x : gather(x, c, unit.columns, rows, column.data());
          loop(from, rows, &mine[c].least, &mine[c].greatest);
        }
      });
    });
  }

  /// Column `c` of rows of `columns` elements, in `to`.
  const void* gather(const void* x, std::int64_t c, std::int64_t columns, std::int64_t rows,
                     void* to) const {
    const std::size_t size = size_of(x_);
    expr::cpu_level().gather(size)(
        to, static_cast<const std::byte*>(x) + static_cast<std::size_t>(c) * size, columns, rows);
    return to;
  }

  void make_edges(const Extremes<K>* extremes, std::int64_t set, E* edges) const {
    const std::int64_t bins = plan_.bins;
    E low = 0, high = 1;
    const auto [first, column] = units_.place_of(set);
    Extremes<K> all;
    for (std::int64_t b = 0; b < units_.tiling.blocks; ++b)
      all.add(extremes[(first + b) * units_.tiling.chunk + column]);
    if (all.least <= all.greatest) {
      low = edge_below<E>(all.least);
      high = edge_above<E>(all.greatest);
      widen(low, high);
    }
    const Range range(static_cast<double>(low), static_cast<double>(high), bins);
    for (std::int64_t i = 0; i <= bins; ++i)
      edges[i] = static_cast<E>(range.edge(bins, i));
  }

  Bins bins_of(const E* edges) const {
    Bins bins(x_, edges, plan_.bins, plan_.kind != EdgePlan::Kind::table);
    if (!table_.empty()) bins.table = table_.data();
    return bins;
  }

  /// Calls visit(found, first, count) with the bins of elements first .. first + count of `n` in a
  /// tile of whole rows of the unit.
  template <class Visit>
  void for_found(const Unit& unit, const Job<E>& job, const Bins& shared, const void* x,
                 std::int64_t n, Visit&& visit) const {
    const auto size = static_cast<std::int64_t>(size_of(x_));
    const std::int64_t step =
        std::max<std::int64_t>(kStepElements / unit.columns, 1) * unit.columns;
    std::array<std::uint32_t, kStepElements> found;
    for (std::int64_t first = 0; first < n; first += step) {
      const std::int64_t count = std::min(step, n - first);
      const char* from = static_cast<const char*>(x) + first * size;
      if (edge_sets() == 1 || unit.columns == 1) {
        find_(shared, from, count, found.data());
      } else {
        find_by_column(unit, job, from, count / unit.columns, found.data());
      }
      visit(found.data(), first, count);
    }
  }

  /// Where each column has its own edges.
  void find_by_column(const Unit& unit, const Job<E>& job, const char* x, std::int64_t rows,
                      std::uint32_t* found) const {
    std::array<std::uint64_t, kStepElements> keys;
    std::array<std::uint32_t, kStepElements> column;
    for (std::int64_t c = 0; c < unit.columns; ++c) {
      find_(bins_of(job.edges + (unit.slice + c) * (plan_.bins + 1)),
            gather(x, c, unit.columns, rows, keys.data()), rows, column.data());
      for (std::int64_t row = 0; row < rows; ++row)
        found[row * unit.columns + c] = column[row];
    }
  }

  /// The bins of slice `unit.slice`, which all columns of the unit share where there is one set of
  /// edges.
  Bins first_bins(const Unit& unit, const Job<E>& job) const {
    return bins_of(job.edges + (edge_sets() == 1 ? 0 : unit.slice) * (plan_.bins + 1));
  }

  /// The same for elements of 8 bits in one column: their values are counted first.
  void count_values(const Unit& unit, const Job<E>& job, std::uint32_t* counters) const {
    constexpr std::int64_t kValues = 256, kCopies = 8;
    std::array<std::uint64_t, kTileElements / 8> room;
    std::array<std::uint32_t, kCopies * kValues> values{};
    units_.for_tiles(unit, [&](std::int64_t offset, std::int64_t rows) {
      const void* x = load_x_.load(job.inputs, offset, rows, room.data());
      count_in_turn<kCopies>(static_cast<const std::uint8_t*>(x), rows, values.data());
    });
    for (std::size_t i = 0; i < values.size(); ++i)
      counters[table_[i / kCopies] * copies_] += values[i];
  }

  /// Counts of a unit: for each of its columns `copies_` for each bin and for what is ignored.
  void count_unit(const Unit& unit, const Job<E>& job, std::uint32_t* counters) const {
    if (!table_.empty() && unit.columns == 1 && unit.last - unit.first >= kCountedValues)
      return count_values(unit, job, counters);
    const std::int64_t pitch = plan_.bins + 1;
    const Bins shared = first_bins(unit, job);
    std::array<std::uint64_t, kTileElements> room;
    units_.for_tiles(unit, [&](std::int64_t offset, std::int64_t rows) {
      const std::int64_t n = rows * unit.columns;
      const void* x = load_x_.load(job.inputs, offset, n, room.data());
      for_found(unit, job, shared, x, n,
                [&](const std::uint32_t* found, std::int64_t, std::int64_t count) {
                  if (copies_ == 8) return count_in_turn<8>(found, count, counters);
                  if (copies_ == 4) return count_in_turn<4>(found, count, counters);
                  for (std::int64_t i = 0; i < count; i += unit.columns) {
                    for (std::int64_t c = 0; c < unit.columns; ++c)
                      ++counters[c * pitch + found[i + c]];
                  }
                });
    });
  }

  /// The same with sums of weights, or for so many bins that copies would not fit a cache.
  template <class A>
  void add_unit(const Unit& unit, const Job<E>& job, A* counters) const {
    const std::int64_t pitch = plan_.bins + 1;
    const auto bins = static_cast<std::uint32_t>(plan_.bins);
    const Bins shared = first_bins(unit, job);
    std::array<std::uint64_t, kTileElements> room, weights_room;
    std::array<double, kTileElements> weights;
    units_.for_tiles(unit, [&](std::int64_t offset, std::int64_t rows) {
      const std::int64_t n = rows * unit.columns;
      const void* x = load_x_.load(job.inputs, offset, n, room.data());
      if constexpr (std::is_same_v<A, double>)
        convert_weights_(load_weights_->load(job.inputs, offset, n, weights_room.data()), n,
                         weights.data());
      for_found(unit, job, shared, x, n,
                [&](const std::uint32_t* found, std::int64_t first, std::int64_t count) {
                  for (std::int64_t i = 0; i < count; i += unit.columns) {
                    for (std::int64_t c = 0; c < unit.columns; ++c) {
                      const std::uint32_t bin = found[i + c];
                      A& counter = counters[c * pitch + bin];
                      if constexpr (std::is_same_v<A, double>) {
                        counter +=
                            bin < bins ? weights[static_cast<std::size_t>(first + i + c)] : 1;
                      } else {
                        counter += 1;
                      }
                    }
                  }
                });
    });
  }

  /// A unit's counts by column and bin, the last for what is ignored: to total(column, bin, count).
  template <class Total>
  void count_copies(const Unit& unit, const Job<E>& job, Total&& total) const {
    const std::int64_t pitch = plan_.bins + 1, row = unit.columns * pitch;
    std::array<std::uint32_t, kCachedCounters> counters;
    std::fill_n(counters.data(), copies_ * row, 0U);
    count_unit(unit, job, counters.data());
    for (std::int64_t i = 0; copies_ > 1 && i < row; ++i) {
      const auto first = counters.begin() + i * copies_;
      counters[static_cast<std::size_t>(i)] = std::accumulate(first, first + copies_, 0U);
    }
    total(counters.data());
  }

  template <class A>
  void count(const Job<E>& job) const {
    const std::int64_t pitch = plan_.bins + 1;
    A* counters = static_cast<A*>(job.counters);
    units_.for_units([&](std::int64_t i, const Unit& unit) {
      A* mine = counters + i * units_.tiling.chunk * pitch;
      if (copies_ == 0) {
        std::fill_n(mine, unit.columns * pitch, A{0});
        return add_unit(unit, job, mine);
      }
      count_copies(unit, job, [&](const std::uint32_t* counts) {
        if (!is_direct()) {
          std::copy_n(counts, unit.columns * pitch, mine);
          return;
        }
        for (std::int64_t c = 0; c < unit.columns; ++c)
          finish(unit.slice + c, job,
                 [&](std::int64_t bin) { return static_cast<A>(counts[c * pitch + bin]); });
      });
    });
    if (is_direct()) return;
    parallel_for(units_.slices.count(), 1 + kTileElements / plan_.bins,
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t slice = begin; slice < end; ++slice) {
                     const auto [first, column] = units_.place_of(slice);
                     finish(slice, job, [&, unit = first, c = column](std::int64_t bin) {
                       A sum = 0;
                       for (std::int64_t b = 0; b < units_.tiling.blocks; ++b)
                         sum += counters[((unit + b) * units_.tiling.chunk + c) * pitch + bin];
                       return sum;
                     });
                   }
                 });
  }

  /// Writes a slice's histogram, of which total(bin) is in each bin and total(bins) ignored.
  template <class TotalOf>
  void finish(std::int64_t slice, const Job<E>& job, TotalOf&& total) const {
    const std::int64_t bins = plan_.bins;
    if (job.outputs[2].data != nullptr)
      job.outputs[2].template as<std::int64_t>()[slice] = static_cast<std::int64_t>(total(bins));
    if (job.outputs[0].data == nullptr) return;
    if (!weighted_ && !density_) {
      std::int64_t* hist = job.outputs[0].template as<std::int64_t>() + slice * bins;
      for (std::int64_t i = 0; i < bins; ++i)
        hist[i] = static_cast<std::int64_t>(total(i));
      return;
    }
    double* hist = job.outputs[0].template as<double>() + slice * bins;
    decltype(total(0)) sum = 0;
    for (std::int64_t i = 0; i < bins; ++i) {
      const auto in_bin = total(i);
      sum += in_bin;
      hist[i] = static_cast<double>(in_bin);
    }
    if (!density_) return;
    const E* edges = job.edges + (edge_sets() == 1 ? 0 : slice * (bins + 1));
    for (std::int64_t i = 0; i < bins; ++i) {
      hist[i] = hist[i] / (static_cast<double>(edges[i + 1]) - static_cast<double>(edges[i])) /
                static_cast<double>(sum);
    }
  }

  EdgePlan plan_;
  bool density_;
  bool weighted_;
  Dtype x_;
  CpuUnits units_;
  std::int64_t copies_ =
      0;  ///< of a unit's counters, which the stack has room for; 0: they are in the scratch
  std::vector<E> edges_;  ///< those known without the data
  std::vector<std::uint32_t> table_;
  expr::Tile load_x_;
  std::optional<expr::Tile> load_weights_;
  Convert* convert_weights_ = nullptr;
  FindBins* find_;
};

}  // namespace

std::unique_ptr<Body> histogram_cpu(const Op& op, const Problem& problem, const Context&) {
  std::unique_ptr<Body> body;
  dispatch(RealTypesAndBool{}, problem.inputs[0].dtype, "histogram", "x", [&]<class T>(Type<T>) {
    body = std::make_unique<HistogramCpu<Key<T>>>(op.settings<Histogram>(), problem);
  });
  return body;
}

}  // namespace forebay
