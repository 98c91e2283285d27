#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <type_traits>

#include <forebay/array/dispatch.h>
#include <forebay/array/parallel.h>
#include <forebay/ops/normalize/statistics.h>

// Units of slices.h in parallel, each in tiles that stay in L1: elements become f64 distances from
// the pivot once, and all statistics are loops over those, with as many running sums side by side
// as vector units like.
namespace forebay {
namespace {

using namespace normalize_detail;  // NOLINT(google-build-using-namespace): the other half of this
                                   // file

constexpr std::int64_t kTileElements = 4096;
constexpr std::int64_t kUnitElements = 65536;
constexpr std::int64_t kMostColumns = 256;
constexpr std::int64_t kLanes = 64;

template <class T>
double to_double(T x) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    return static_cast<float>(x);
  } else {
    return static_cast<double>(x);
  }
}

template <class T>
double difference(T x, T pivot) {
  if constexpr (std::is_integral_v<T> && sizeof(T) == 8) {
    using U = std::make_unsigned_t<T>;
    return x >= pivot ? static_cast<double>(static_cast<U>(x) - static_cast<U>(pivot))
                      : -static_cast<double>(static_cast<U>(pivot) - static_cast<U>(x));
  } else {
    return to_double(x) - to_double(pivot);
  }
}

/// What is done to elements of one dtype. `rows` x `columns` elements lie dense at `x`.
struct Reader {
  /// Distances from the pivots: the elements of `pivots` when there are, else `means`.
  void (*distances)(const void* x, std::int64_t rows, std::int64_t columns, const void* pivots,
                    const double* means, double* out);
  /// ((x - high) - low) / divisor in f32, for dtypes that f32 holds exactly.
  void (*scaled)(const void* x, std::int64_t rows, std::int64_t columns, const NarrowScale* scales,
                 float* out);
  /// One pivot as a double; 0 for an element that is not finite.
  double (*pivot)(const void* element);
  std::size_t size = 0;
};

template <class T>
T finite_or_zero(T x) {
  return std::isfinite(to_double(x)) ? x : T{};
}

template <class T>
Reader reader_of() {
  Reader reader;
  reader.size = sizeof(T);
  reader.pivot = [](const void* element) {
    return to_double(finite_or_zero(*static_cast<const T*>(element)));
  };
  reader.distances = [](const void* raw, std::int64_t rows, std::int64_t columns,
                        const void* pivots, const double* means, double* out) {
    const T* x = static_cast<const T*>(raw);
    const auto each = [&](const auto& value) {
      if (columns == 1) {
        for (std::int64_t i = 0; i < rows; ++i)
          out[i] = value(x[i], 0);
        return;
      }
      for (std::int64_t row = 0; row < rows; ++row) {
        for (std::int64_t c = 0; c < columns; ++c)
          out[row * columns + c] = value(x[row * columns + c], c);
      }
    };
    if (pivots == nullptr) {
      each([means](T element, std::int64_t c) { return to_double(element) - means[c]; });
      return;
    }
    std::array<T, kMostColumns> table;
    for (std::int64_t c = 0; c < columns; ++c)
      table[c] = finite_or_zero(static_cast<const T*>(pivots)[c]);
    each([&table](T element, std::int64_t c) { return difference(element, table[c]); });
  };
  reader.scaled = [](const void* raw, std::int64_t rows, std::int64_t columns,
                     const NarrowScale* scales, float* out) {
    const T* x = static_cast<const T*>(raw);
    const auto value = [](T element, const NarrowScale& k) {
      return ((static_cast<float>(element) - k.high) - k.low) / k.divisor;
    };
    if (columns == 1) {
      const NarrowScale k = scales[0];
      for (std::int64_t i = 0; i < rows; ++i)
        out[i] = value(x[i], k);
      return;
    }
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t c = 0; c < columns; ++c)
        out[row * columns + c] = value(x[row * columns + c], scales[c]);
    }
  };
  return reader;
}

struct Writer {
  void (*from_f32)(const float* values, std::int64_t count, void* out);
  void (*from_f64)(const double* values, std::int64_t count, void* out);
  std::size_t size = 0;
};

template <class T>
Writer writer_of() {
  return {[](const float* values, std::int64_t count, void* out) {
            for (std::int64_t i = 0; i < count; ++i)
              static_cast<T*>(out)[i] = static_cast<T>(values[i]);
          },
          [](const double* values, std::int64_t count, void* out) {
            for (std::int64_t i = 0; i < count; ++i)
              static_cast<T*>(out)[i] = static_cast<T>(values[i]);
          },
          sizeof(T)};
}

/// Sums that run side by side: as many whole rows as kLanes holds.
std::int64_t lanes_of(std::int64_t rows, std::int64_t columns) {
  return columns * std::clamp<std::int64_t>(kLanes / columns, 1, rows);
}

/// Sum of value(x, lane) by column over `count` elements that lie as rows of `columns`.
template <class Value>
void column_sums(const double* x, std::int64_t count, std::int64_t columns, double* sums,
                 const Value& value) {
  const std::int64_t lanes = lanes_of(count / columns, columns);
  std::array<double, kMostColumns> running;
  std::fill_n(running.data(), lanes, 0.0);
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    for (std::int64_t lane = 0; lane < lanes; ++lane)
      running[lane] += value(x[i + lane], lane);
  }
  for (std::int64_t lane = 0; i + lane < count; ++lane)
    running[lane] += value(x[i + lane], lane);
  std::fill_n(sums, columns, 0.0);
  for (std::int64_t lane = 0; lane < lanes; ++lane)
    sums[lane % columns] += running[lane];
}

/// Adds the moments of rows x columns distances to those of `before` rows.
void add_tile(const double* x, std::int64_t rows, std::int64_t columns, std::int64_t before,
              Moments* moments) {
  std::array<double, kMostColumns> sums, squares, means;
  column_sums(x, rows * columns, columns, sums.data(), [](double d, std::int64_t) { return d; });
  const std::int64_t lanes = lanes_of(rows, columns);
  for (std::int64_t lane = 0; lane < lanes; ++lane)
    means[lane] = sums[lane % columns] / static_cast<double>(rows);
  column_sums(x, rows * columns, columns, squares.data(), [&means](double d, std::int64_t lane) {
    const double distance = d - means[lane];
    return distance * distance;
  });
  const auto n = static_cast<double>(rows), all = static_cast<double>(before + rows);
  for (std::int64_t c = 0; c < columns; ++c) {
    const double delta = means[c] - moments[c].mean;
    moments[c].mean += delta * (n / all);
    moments[c].m2 += squares[c] + delta * delta * (static_cast<double>(before) * n / all);
  }
}

class NormalizeCpu final : public Body {
 public:
  NormalizeCpu(const Normalize& settings, const ArraySpec& x, Dtype output)
      : settings_(settings),
        slices_(slices_of(x.shape, statistics_axes(settings, x.shape))),
        tiling_(tile(slices_, kMostColumns,
                     kUnitElements / std::clamp<std::int64_t>(slices_.columns, 1, kMostColumns))),
        is_narrow_(is_narrow(x.dtype, output)),
        is_empty_(count_of(x.shape) == 0) {
    dispatch(RealTypesAndBool{}, x.dtype, "normalize", "x",
             [&]<class T>(Type<T>) { reader_ = reader_of<T>(); });
    dispatch(Types<Half, BFloat16, float, double>{}, output, "normalize", "dtype",
             [&]<class T>(Type<T>) { writer_ = writer_of<T>(); });
  }

  std::size_t scratch_bytes() const override {
    return sizeof(Moments) * static_cast<std::size_t>(tiling_.units(slices_) * tiling_.chunk) +
           sizeof(Scale) * static_cast<std::size_t>(slices_.count());
  }

  void run(std::span<const ArrayView> inputs, std::span<const ArrayView> outputs,
           const Launch& launch) override {
    if (is_empty_ || outputs[0].data == nullptr) return;
    const char* x = inputs[0].as<char>();
    char* out = outputs[0].as<char>();
    auto* partials = static_cast<Moments*>(launch.scratch);
    const std::int64_t units = tiling_.units(slices_);
    auto* scales = reinterpret_cast<Scale*>(partials + units * tiling_.chunk);
    const std::int64_t grain =
        std::max<std::int64_t>(1, kTileElements / (tiling_.chunk * tiling_.block));

    parallel_for(units, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const Unit unit = unit_of(slices_, tiling_, i);
        Moments* moments = partials + i * tiling_.chunk;
        compute_moments(x, unit, moments);
        if (tiling_.blocks > 1) continue;
        for (std::int64_t c = 0; c < unit.columns; ++c)
          scales[unit.slice + c] = scale_of(moments + c, unit.slice + c);
        apply(x, out, unit, scales + unit.slice);
      }
    });
    if (tiling_.blocks == 1) return;
    parallel_for(slices_.count(), 16, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t slice = begin; slice < end; ++slice) {
        const std::int64_t group = slice / slices_.columns, column = slice % slices_.columns;
        const std::int64_t first =
            (group * tiling_.chunks + column / tiling_.chunk) * tiling_.blocks;
        scales[slice] = scale_of(partials + first * tiling_.chunk + column % tiling_.chunk, slice);
      }
    });
    parallel_for(units, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const Unit unit = unit_of(slices_, tiling_, i);
        apply(x, out, unit, scales + unit.slice);
      }
    });
  }

 private:
  /// A constant that belongs to a slice: the table runs along the last of the kept axes.
  static double of_slice(const Reals& constant, std::int64_t slice) {
    return constant.values[static_cast<std::size_t>(slice) % constant.values.size()];
  }

  /// Distances of some positions of the unit from their pivots, as rows of unit.columns.
  void read_distances(const char* x, const Unit& unit, std::int64_t first, std::int64_t last,
                      double* out) const {
    std::array<double, kMostColumns> means;
    const char* pivots = x + static_cast<std::size_t>(unit.offset) * reader_.size;
    if (settings_.mean) {
      for (std::int64_t c = 0; c < unit.columns; ++c)
        means[c] = of_slice(*settings_.mean, unit.slice + c);
      pivots = nullptr;
    }
    for_dense_runs(slices_, unit, first, last, [&](std::int64_t offset, std::int64_t rows) {
      reader_.distances(x + static_cast<std::size_t>(offset) * reader_.size, rows, unit.columns,
                        pivots, means.data(), out);
      out += rows * unit.columns;
    });
  }

  template <class Visit>
  static void for_tiles(const Unit& unit, Visit&& visit) {
    const std::int64_t rows = kTileElements / unit.columns;
    for (std::int64_t first = unit.first; first < unit.last; first += rows)
      visit(first, std::min(first + rows, unit.last));
  }

  void compute_moments(const char* x, const Unit& unit, Moments* moments) const {
    std::fill_n(moments, unit.columns, Moments{});
    std::array<double, kTileElements> distances;
    for_tiles(unit, [&](std::int64_t first, std::int64_t last) {
      read_distances(x, unit, first, last, distances.data());
      add_tile(distances.data(), last - first, unit.columns, first - unit.first, moments);
    });
  }

  /// Merges the blocks of a slice, in order: two passes over their moments.
  Scale scale_of(const Moments* partials, std::int64_t slice) const {
    const std::int64_t length = slices_.length();
    const auto n = static_cast<double>(length);
    const auto size = [&](std::int64_t block) {
      return static_cast<double>(std::min(tiling_.block, length - block * tiling_.block));
    };
    double sum = 0;
    for (std::int64_t b = 0; b < tiling_.blocks; ++b)
      sum += size(b) * partials[b * tiling_.chunk].mean;
    Scale scale{sum / n, 0};
    double m2 = 0;
    for (std::int64_t b = 0; b < tiling_.blocks; ++b) {
      const Moments& part = partials[b * tiling_.chunk];
      const double delta = part.mean - scale.mean;
      m2 += part.m2 + size(b) * (delta * delta);
    }
    if (settings_.mean) {  // the pivot is the given mean: squares about it
      m2 += n * (scale.mean * scale.mean);
      scale.mean = 0;
    }
    const double epsilon = settings_.epsilon;
    const EpsilonPlace place = settings_.epsilon_place;
    if (settings_.std) {
      scale.divisor = divisor_of_std(of_slice(*settings_.std, slice), epsilon, place);
    } else if (settings_.ddof >= length) {
      scale.divisor = std::numeric_limits<double>::quiet_NaN();
    } else {
      scale.divisor = divisor(m2 / static_cast<double>(length - settings_.ddof), epsilon, place);
    }
    return scale;
  }

  void apply(const char* x, char* out, const Unit& unit, const Scale* scales) const {
    if (!is_narrow_) return apply_wide(x, out, unit, scales, nullptr);
    std::array<NarrowScale, kMostColumns> narrow_scales;
    bool all_fit = true;
    for (std::int64_t c = 0; c < unit.columns; ++c) {
      const double pivot =
          settings_.mean
              ? of_slice(*settings_.mean, unit.slice + c)
              : reader_.pivot(x + static_cast<std::size_t>(unit.offset + c) * reader_.size);
      narrow_scales[c] = narrow(scales[c], pivot);
      all_fit = all_fit && narrow_scales[c].fits;
    }
    std::array<float, kTileElements> values;
    for_tiles(unit, [&](std::int64_t first, std::int64_t last) {
      for_dense_runs(slices_, unit, first, last, [&](std::int64_t offset, std::int64_t rows) {
        reader_.scaled(x + static_cast<std::size_t>(offset) * reader_.size, rows, unit.columns,
                       narrow_scales.data(), values.data());
        writer_.from_f32(values.data(), rows * unit.columns,
                         out + static_cast<std::size_t>(offset) * writer_.size);
      });
    });
    if (!all_fit) apply_wide(x, out, unit, scales, narrow_scales.data());
  }

  /// In f64; only for the columns that do not fit f32, when those are given.
  void apply_wide(const char* x, char* out, const Unit& unit, const Scale* scales,
                  const NarrowScale* narrow_scales) const {
    const bool zero = settings_.zero_std == ZeroStd::zero;
    std::array<double, kTileElements> values;
    for_tiles(unit, [&](std::int64_t first, std::int64_t last) {
      read_distances(x, unit, first, last, values.data());
      for (std::int64_t i = 0, c = 0; i < (last - first) * unit.columns;
           ++i, c = c + 1 == unit.columns ? 0 : c + 1) {
        values[i] =
            zero && scales[c].divisor == 0 ? 0 : (values[i] - scales[c].mean) / scales[c].divisor;
      }
      const double* next = values.data();
      for_dense_runs(slices_, unit, first, last, [&](std::int64_t offset, std::int64_t rows) {
        if (narrow_scales == nullptr) {
          writer_.from_f64(next, rows * unit.columns,
                           out + static_cast<std::size_t>(offset) * writer_.size);
        } else {
          for (std::int64_t i = 0; i < rows * unit.columns; ++i) {
            if (narrow_scales[i % unit.columns].fits) continue;
            writer_.from_f64(next + i, 1,
                             out + static_cast<std::size_t>(offset + i) * writer_.size);
          }
        }
        next += rows * unit.columns;
      });
    });
  }

  Normalize settings_;
  Slices slices_;
  Tiling tiling_;
  bool is_narrow_;
  bool is_empty_;
  Reader reader_;
  Writer writer_;
};

}  // namespace

std::unique_ptr<Body> normalize_cpu(const Op& op, const Problem& problem, const Context&) {
  return std::make_unique<NormalizeCpu>(op.settings<Normalize>(), problem.inputs[0],
                                        problem.outputs[0].dtype);
}

}  // namespace forebay
