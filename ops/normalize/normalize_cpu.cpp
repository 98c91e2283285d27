#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <type_traits>

#include <forebay/array/parallel.h>
#include <forebay/ops/normalize/cpu_tiles.h>
#include <forebay/ops/normalize/normalize_loops.h>

// Slices that fit in the second-level cache are read once and normalized there, by one thread each.
// Of longer ones the units of slices.h are: their moments in parallel, merged in a fixed order, and
// then they are read again. Arithmetic is in W: f32 where elements are exact in it, else f64.
namespace forebay {
namespace {

using namespace normalize_detail;  // NOLINT(google-build-using-namespace): the other half of this
                                   // file

constexpr std::int64_t kUnitElements = 65536;  // of W, in the second-level cache
constexpr std::int64_t kMostRow = 131072;      // elements of a slice that one thread does alone
constexpr std::int64_t kShortRun = 512;        // elements; shorter runs are put side by side

template <class W>
class NormalizeCpu final : public Body {
  static constexpr bool kNarrow = std::is_same_v<W, float>;

 public:
  NormalizeCpu(const Normalize& settings, const Problem& problem)
      : settings_(settings),
        slices_(
            slices_of(problem.inputs[0].shape, statistics_axes(settings, problem.inputs[0].shape))),
        tiling_(tile(slices_, kMostColumns,
                     kUnitElements / std::clamp<std::int64_t>(slices_.columns, 1, kMostColumns))),
        input_(problem, settings.mean.has_value()),
        store_(program_of(stored<W>(problem))),
        is_empty_(count_of(problem.inputs[0].shape) == 0),
        is_rows_(slices_.columns == 1 && slices_.outer == 1 && slices_.rows <= kMostRow),
        by_runs_(slices_.columns <= kMostColumns && slices_.columns * slices_.rows >= kShortRun),
        in_place_(by_runs_ && input_.is_in_place()) {}

  std::size_t scratch_bytes() const override {
    if (is_empty_ || is_rows_) return 0;
    return sizeof(Moments) * static_cast<std::size_t>(tiling_.units(slices_) * tiling_.chunk) +
           sizeof(Scale) * static_cast<std::size_t>(slices_.count());
  }

  void run(std::span<const ArrayView> sources, std::span<const ArrayView> outputs,
           const Launch& launch) override {
    if (is_empty_ || outputs[0].data == nullptr) return;
    if (is_rows_) {
      parallel_for(slices_.groups, std::max<std::int64_t>(1, 2 * kTile / slices_.rows),
                   [&](std::int64_t begin, std::int64_t end) {
                     Sink<W> sink(store_, sources, outputs[0]);
                     run_rows(sources, begin, end, sink);
                     sink.flush();
                   });
    } else {
      run_units(sources, outputs[0], static_cast<Moments*>(launch.scratch));
    }
  }

 private:
  // ---- Slices that lie dense, one after the other

  void run_rows(std::span<const ArrayView> sources, std::int64_t begin, std::int64_t end,
                Sink<W>& sink) const {
    const std::int64_t length = slices_.rows, batch = std::max<std::int64_t>(1, kTile / length);
    std::array<Moments, kTile> moments;
    std::array<Factors<W>, kTile> factors;
    std::array<Scale, kTile> scales;
    for (std::int64_t first = begin; first < end; first += batch) {
      const std::int64_t rows = std::min(batch, end - first);
      const W* const x = input_.rows(sources, first, rows, length);
      loops<W>().moments(x, rows, length, given_means(first, rows), !settings_.std, moments.data());
      bool plain = true;
      for (std::int64_t row = 0; row < rows; ++row) {
        scales[row] = scale_of(moments[row], first + row);
        plain &= set_factors(scales[row], factors[row]);
      }
      const W* const next =
          input_.is_in_place() && first + rows < end ? x + rows * length : nullptr;
      for (std::int64_t piece = 0; piece < rows * length; piece += kTile) {  // one, or of one row
        const std::int64_t n = std::min(kTile, rows * length - piece), each = n / rows;
        W* const to = sink.at(first * length + piece, n);
        loops<W>().scaled(x + piece, rows, each, factors.data(), to,
                          next == nullptr ? nullptr : next + piece);
        for (std::int64_t row = 0; !plain && row < rows; ++row)
          correct(x + piece + row * each, each, 1, scales[row], to + row * each);
      }
    }
  }

  /// Null where they are computed.
  const double* given_means(std::int64_t slice, std::int64_t count) const {
    if (!settings_.mean) return nullptr;
    double* const means = thread_room<double>(count, 4);
    for (std::int64_t i = 0; i < count; ++i)
      means[i] = of_slice(*settings_.mean, slice + i);
    return means;
  }

  // ---- Any slices, by units

  void run_units(std::span<const ArrayView> sources, const ArrayView& out,
                 Moments* partials) const {
    const std::int64_t units = tiling_.units(slices_);
    auto* scales = reinterpret_cast<Scale*>(partials + units * tiling_.chunk);
    const bool whole = tiling_.blocks == 1;  // each unit has all of its slices
    const auto for_units = [&](auto&& visit) {
      const std::int64_t grain = 2 * kTile / (tiling_.chunk * tiling_.block);
      parallel_for(units, grain, [&](std::int64_t begin, std::int64_t end) {
        Sink<W> sink(store_, sources, out);
        for (std::int64_t i = begin; i < end; ++i)
          visit(i, unit_of(slices_, tiling_, i), sink);
        sink.flush();
      });
    };
    for_units([&](std::int64_t i, const Unit& unit, Sink<W>& sink) {
      const UnitValues values(*this, sources, unit);
      Moments* const moments = partials + i * tiling_.chunk;
      set_moments(values, moments);
      if (!whole) return;
      merge(moments, unit.slice, unit.columns, scales + unit.slice);
      apply(values, scales + unit.slice, sink);
    });
    if (whole) return;
    constexpr std::int64_t kTogether = 64;  // slices that lie beside each other in the partials
    const std::int64_t parts = (tiling_.chunk + kTogether - 1) / kTogether;
    parallel_for(slices_.groups * tiling_.chunks * parts, 1,
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t i = begin; i < end; ++i) {
                     const std::int64_t first = i % parts * kTogether;
                     const Unit unit = unit_of(slices_, tiling_, i / parts * tiling_.blocks);
                     const std::int64_t count = std::min(kTogether, unit.columns - first);
                     if (count > 0) {
                       merge(partials + i / parts * tiling_.blocks * tiling_.chunk + first,
                             unit.slice + first, count, scales + unit.slice + first);
                     }
                   }
                 });
    for_units([&](std::int64_t, const Unit& unit, Sink<W>& sink) {
      apply(UnitValues(*this, sources, unit), scales + unit.slice, sink);
    });
  }

  /// The elements of a unit as rows of unit.columns: where they lie, or side by side in this
  /// thread's room.
  struct UnitValues {
    UnitValues(const NormalizeCpu& owner, std::span<const ArrayView> from, const Unit& of)
        : body(owner), sources(from), unit(of) {
      body.input_.set_pivots(sources, unit.offset, unit.columns, pivots);
      if (body.in_place_) return;
      W* const room = thread_room<W>((unit.last - unit.first) * unit.columns, 2);
      W* to = room;
      for_runs([&](std::int64_t offset, std::int64_t rows) {
        const std::int64_t n = rows * unit.columns;
        const W* const x = body.input_.at(sources, offset, rows, unit.columns, pivots, to);
        if (x != to) std::copy_n(x, n, to);
        to += n;
      });
      held = room;
    }

    template <class Visit>
    void for_runs(Visit&& visit) const {
      for_dense_runs(body.slices_, unit, unit.first, unit.last, visit);
    }
    /// visit(values, offset in the array, rows)
    template <class Visit>
    void for_values(Visit&& visit) const {
      const W* next = held;
      for_runs([&](std::int64_t offset, std::int64_t rows) {
        if (held == nullptr) next = body.input_.in_place(sources, offset);
        visit(next, offset, rows);
        next += rows * unit.columns;
      });
    }
    /// visit(values, rows): in the same parts whether they are held or not, as sums depend on it.
    template <class Visit>
    void for_moments(Visit&& visit) const {
      if (!body.by_runs_) return visit(held, unit.last - unit.first);
      for_values([&](const W* x, std::int64_t, std::int64_t rows) { visit(x, rows); });
    }

    const NormalizeCpu& body;
    std::span<const ArrayView> sources;
    Unit unit;
    typename Input<W>::Pivots pivots;
    const W* held = nullptr;
  };

  /// A constant that belongs to a slice: the table runs along the last of the kept axes.
  static double of_slice(const Reals& constant, std::int64_t slice) {
    return constant.values[static_cast<std::size_t>(slice) % constant.values.size()];
  }

  // ---- Statistics

  /// Of a unit's columns, in two passes. Where the mean is given the squares are about it.
  void set_moments(const UnitValues& values, Moments* moments) const {
    const Loops<W>& loops = normalize_detail::loops<W>();
    const std::int64_t columns = values.unit.columns;
    const auto rows = static_cast<double>(values.unit.last - values.unit.first);
    ByLane<double> sums, means;
    std::fill_n(sums.data(), columns, 0.0);
    if (!settings_.mean) {
      values.for_moments(
          [&](const W* x, std::int64_t n) { loops.column_sums(x, n, columns, sums.data()); });
    }
    fill_lanes(means, columns, [&](std::int64_t c) {
      return settings_.mean ? of_slice(*settings_.mean, values.unit.slice + c) : sums[c] / rows;
    });
    std::fill_n(sums.data(), columns, 0.0);
    if (!settings_.std) {
      values.for_moments([&](const W* x, std::int64_t n) {
        loops.column_squares(x, n, columns, means, sums.data());
      });
    }
    for (std::int64_t c = 0; c < columns; ++c)
      moments[c] = {means[c], sums[c]};
  }

  /// Scales of neighbouring slices from the moments of their blocks, in order: two passes, about
  /// the first means, so that equal elements give exactly 0.
  void merge(const Moments* partials, std::int64_t slice, std::int64_t count, Scale* scales) const {
    const std::int64_t length = slices_.length();
    const auto for_blocks = [&](auto&& visit) {
      for (std::int64_t b = 0; b < tiling_.blocks; ++b) {
        const auto size = static_cast<double>(std::min(tiling_.block, length - b * tiling_.block));
        for (std::int64_t c = 0; c < count; ++c)
          visit(c, size, partials[b * tiling_.chunk + c]);
      }
    };
    ByLane<double> origin, sums, m2;
    for (std::int64_t c = 0; c < count; ++c) {
      origin[c] = std::isfinite(partials[c].mean) ? partials[c].mean : 0;
      sums[c] = m2[c] = 0;
    }
    for_blocks([&](std::int64_t c, double size, const Moments& part) {
      sums[c] += size * (part.mean - origin[c]);
    });
    for (std::int64_t c = 0; c < count; ++c)
      scales[c].mean = origin[c] + sums[c] / static_cast<double>(length);
    for_blocks([&](std::int64_t c, double size, const Moments& part) {
      const double delta = part.mean - scales[c].mean;
      m2[c] += part.m2 + size * (delta * delta);
    });
    for (std::int64_t c = 0; c < count; ++c)
      scales[c] = scale_of({scales[c].mean, m2[c]}, slice + c);
  }

  Scale scale_of(const Moments& moments, std::int64_t slice) const {
    const std::int64_t length = slices_.length();
    const double epsilon = settings_.epsilon;
    const EpsilonPlace place = settings_.epsilon_place;
    if (settings_.std)
      return {moments.mean, divisor_of_std(of_slice(*settings_.std, slice), epsilon, place)};
    if (settings_.ddof >= length) return {moments.mean, std::numeric_limits<double>::quiet_NaN()};
    return {moments.mean,
            divisor(moments.m2 / static_cast<double>(length - settings_.ddof), epsilon, place)};
  }

  // ---- Results

  /// False when some results of the slice need a closer look.
  static bool set_factors(const Scale& scale, Factors<W>& factors) {
    if constexpr (kNarrow) {
      const NarrowScale narrow = normalize_detail::narrow(scale);
      factors = {narrow.high, narrow.low, narrow.divisor};
      return narrow.fits;
    } else {
      factors = {scale.mean, 0, scale.divisor};
      return scale.divisor != 0;
    }
  }

  void apply(const UnitValues& values, const Scale* scales, Sink<W>& sink) const {
    const std::int64_t columns = values.unit.columns, step = kTile / columns;
    LaneFactors<W> factors;
    bool plain = true;
    ByLane<Factors<W>> by_column;
    fill_lanes(by_column, columns, [&](std::int64_t c) {
      Factors<W> of_column;
      plain &= set_factors(scales[c], of_column);
      return of_column;
    });
    for (std::int64_t lane = 0; lane < lanes_of(columns); ++lane) {
      factors.high[lane] = by_column[lane].high;
      factors.low[lane] = by_column[lane].low;
      factors.divisor[lane] = by_column[lane].divisor;
    }
    values.for_values([&](const W* x, std::int64_t offset, std::int64_t rows) {
      for (std::int64_t row = 0; row < rows; row += step) {
        const std::int64_t n = std::min(step, rows - row), first = row * columns;
        W* const to = sink.at(offset + first, n * columns);
        loops<W>().column_scaled(x + first, n, columns, factors, to);
        for (std::int64_t c = 0; !plain && c < columns; ++c)
          correct(x + first + c, n, columns, scales[c], to + c);
      }
    });
  }

  /// Again, for a slice whose results f32 may not give, or whose divisor is 0.
  void correct(const W* x, std::int64_t rows, std::int64_t columns, const Scale& scale,
               W* to) const {
    if (kNarrow && narrow(scale).fits) return;
    const bool zero = settings_.zero_std == ZeroStd::zero && scale.divisor == 0;
    for (std::int64_t i = 0; i < rows * columns; i += columns)
      to[i] = zero ? 0 : static_cast<W>((x[i] - scale.mean) / scale.divisor);
  }

  Normalize settings_;
  Slices slices_;
  Tiling tiling_;
  Input<W> input_;
  expr::Tile store_;
  bool is_empty_;
  bool is_rows_;   // slices lie dense and are short enough for a thread
  bool by_runs_;   // parts of units that lie dense are long enough to be summed as they are
  bool in_place_;  // and are read where they lie, not put side by side before
};

}  // namespace

std::unique_ptr<Body> normalize_cpu(const Op& op, const Problem& problem, const Context&) {
  const auto& settings = op.settings<Normalize>();
  if (is_narrow(problem.inputs[0].dtype, problem.outputs[0].dtype))
    return std::make_unique<NormalizeCpu<float>>(settings, problem);
  return std::make_unique<NormalizeCpu<double>>(settings, problem);
}

}  // namespace forebay
