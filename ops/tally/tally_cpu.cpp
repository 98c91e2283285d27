#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <forebay/array/dispatch.h>
#include <forebay/array/parallel.h>
#include <forebay/ops/expr/tile.h>
#include <forebay/ops/tally/bins.h>
#include <forebay/ops/tally/tally.h>

// Units of slices.h count into tables of their own: those of block 0 are the result, the others lie
// in scratch and are added to it. Integers, so that any order gives the same.
namespace forebay {
namespace {

using namespace tally_detail;  // NOLINT(google-build-using-namespace): how values find their bins

constexpr std::int64_t kTileElements = 4096;
constexpr std::int64_t kMostColumns = 256;
constexpr std::int64_t kMostBlocks = 16;  // along a slice: copies of its table
constexpr std::int64_t kUnits = 64;       // aimed at
constexpr std::int64_t kUnitElements = 65536;
constexpr std::int64_t kWordsOfTask = 32768;

/// Adds one value to the words of its bin: each 32 bits of `low` and of its square to their own.
template <int LowDigits, int SquareDigits>
inline void add(std::uint64_t* words, std::uint64_t low) {
  constexpr std::uint64_t kDigit = 0xffffffff;
  words[0] += 1;
  for (int i = 0; i < LowDigits; ++i)
    words[1 + i] += low >> (32 * i) & kDigit;
  // Of one digit it fits 64 bits; else (a + b 2^32)^2, where b has less than 31 bits.
  const std::uint64_t a = low & kDigit, b = LowDigits > 1 ? low >> 32 : 0;
  std::uint64_t digits[4] = {a * a & kDigit, a * a >> 32};
  if constexpr (SquareDigits > 2) {
    const std::uint64_t second = digits[1] + 2 * (a * b & kDigit);
    const std::uint64_t third = (second >> 32) + 2 * (a * b >> 32) + b * b;
    digits[1] = second & kDigit;
    digits[2] = third & kDigit;
    digits[3] = third >> 32;
  }
  for (int i = 0; i < SquareDigits; ++i)
    words[1 + LowDigits + i] += digits[i];
}

/// Adds rows of neighbouring columns to the table of each.
template <class T, int LowDigits, int SquareDigits>
void count(const T* x, std::int64_t rows, std::int64_t columns, int bits, std::int64_t table_words,
           std::uint64_t* table) {
  constexpr int kWords = 1 + LowDigits + SquareDigits;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      const Place place = place_of(*x++, bits);
      add<LowDigits, SquareDigits>(table + column * table_words + kWords * place.bin, place.low);
    }
  }
}

template <class T>
class TallyCpu final : public Body {
  using Counter = void(const T* x, std::int64_t rows, std::int64_t columns, int bits,
                       std::int64_t table_words, std::uint64_t* table);

 public:
  TallyCpu(const Tally& settings, const Problem& problem)
      : bins_(problem.inputs[0].dtype, settings.bits),
        slices_(
            slices_of(problem.inputs[0].shape, counted_axes(settings, problem.inputs[0].shape))),
        load_(problem.load(0)),
        table_words_(bins_.count() * bins_.words()) {
    const Tiling whole = tile(slices_, kMostColumns, slices_.length());
    const std::int64_t wanted = std::clamp<std::int64_t>(
        kUnits / std::max<std::int64_t>(1, whole.units(slices_)), 1, kMostBlocks);
    // Of as many values as make adding up the tables the smaller part.
    const std::int64_t least =
        std::max(kUnitElements / std::max<std::int64_t>(1, whole.chunk), 2 * table_words_);
    tiling_ = tile(slices_, kMostColumns, std::max(least, slices_.length() / wanted + 1));
    count_ = counter_of(bins_.low_digits(), bins_.square_digits());
  }

  std::size_t scratch_bytes() const override {
    return static_cast<std::size_t>((tiling_.blocks - 1) * slices_.count() * (table_words_ + 2)) *
           sizeof(std::uint64_t);
  }

  void run(std::span<const ArrayView> inputs, std::span<const ArrayView> outputs,
           const Launch& launch) override {
    Job job{inputs, static_cast<std::uint64_t*>(outputs[0].data),
            static_cast<std::uint64_t*>(outputs[1].data),
            static_cast<std::uint64_t*>(launch.scratch)};
    if (job.table != nullptr) clear(job.table, slices_.count() * table_words_);
    if (job.extremes != nullptr) clear(job.extremes, slices_.count() * 2);
    clear(job.more, static_cast<std::int64_t>(scratch_bytes() / sizeof(std::uint64_t)));
    parallel_for(tiling_.units(slices_),
                 std::max<std::int64_t>(1, kTileElements / (tiling_.chunk * tiling_.block)),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t i = begin; i < end; ++i)
                     tally_unit(job, unit_of(slices_, tiling_, i), i % tiling_.blocks);
                 });
    add_up(job);
  }

 private:
  struct Job {
    std::span<const ArrayView> inputs;
    std::uint64_t* table;     ///< null when nobody reads it
    std::uint64_t* extremes;  ///< likewise
    std::uint64_t* more;      ///< tables and extremes of the blocks behind the first
  };

  static void clear(std::uint64_t* words, std::int64_t count) {
    parallel_for(count, kWordsOfTask, [&](std::int64_t begin, std::int64_t end) {
      std::memset(words + begin, 0, static_cast<std::size_t>(end - begin) * sizeof(*words));
    });
  }

  /// Of block `block`, from its first slice on.
  std::uint64_t* table_of(const Job& job, std::int64_t block) const {
    return block == 0 ? job.table : job.more + (block - 1) * slices_.count() * table_words_;
  }
  std::uint64_t* extremes_of(const Job& job, std::int64_t block) const {
    return block == 0 ? job.extremes
                      : job.more + (tiling_.blocks - 1) * slices_.count() * table_words_ +
                            (block - 1) * slices_.count() * 2;
  }

  void tally_unit(const Job& job, const Unit& unit, std::int64_t block) const {
    std::array<std::uint64_t, kTileElements> room;
    const std::int64_t most = kTileElements / unit.columns;
    for_dense_runs(
        slices_, unit, unit.first, unit.last, [&](std::int64_t offset, std::int64_t rows) {
          for (std::int64_t row = 0; row < rows; row += most) {
            const std::int64_t part = std::min(most, rows - row);
            const T* x = static_cast<const T*>(load_.load(job.inputs, offset + row * unit.columns,
                                                          part * unit.columns, room.data()));
            if (job.table != nullptr)
              count_(x, part, unit.columns, bins_.bits(), table_words_,
                     table_of(job, block) + unit.slice * table_words_);
            if (job.extremes != nullptr)
              widen(x, part, unit.columns, extremes_of(job, block) + unit.slice * 2);
          }
        });
  }

  static Counter* counter_of(int low_digits, int square_digits) {
    if constexpr (sizeof(T) <= 2) return count<T, 0, 0>;
    if (low_digits == 2) return count<T, 2, 4>;
    return square_digits == 1 ? count<T, 1, 1> : count<T, 1, 2>;
  }

  void widen(const T* x, std::int64_t rows, std::int64_t columns, std::uint64_t* extremes) const {
    for (std::int64_t column = 0; column < columns; ++column) {
      Pattern<T> greatest = 0, least = static_cast<Pattern<T>>(~Pattern<T>{0});
      bool any = false;
      for (std::int64_t row = 0; row < rows; ++row) {
        const T value = x[row * columns + column];
        const bool finite = is_finite(value);
        const Pattern<T> order = order_of(value);
        any |= finite;
        greatest = finite && order > greatest ? order : greatest;
        least = finite && order < least ? order : least;
      }
      if (!any) continue;
      extremes[2 * column] = std::max(extremes[2 * column], std::uint64_t{greatest});
      extremes[2 * column + 1] = std::max(extremes[2 * column + 1], ~std::uint64_t{least});
    }
  }

  void add_up(const Job& job) const {
    if (tiling_.blocks == 1) return;
    if (job.table != nullptr) {
      parallel_for(slices_.count() * table_words_, kWordsOfTask,
                   [&](std::int64_t begin, std::int64_t end) {
                     for (std::int64_t block = 1; block < tiling_.blocks; ++block) {
                       const std::uint64_t* more = table_of(job, block);
                       for (std::int64_t i = begin; i < end; ++i)
                         job.table[i] += more[i];
                     }
                   });
    }
    if (job.extremes == nullptr) return;
    for (std::int64_t block = 1; block < tiling_.blocks; ++block) {
      const std::uint64_t* more = extremes_of(job, block);
      for (std::int64_t i = 0; i < 2 * slices_.count(); ++i)
        job.extremes[i] = std::max(job.extremes[i], more[i]);
    }
  }

  TallyBins bins_;
  Slices slices_;
  Tiling tiling_;
  expr::Tile load_;
  std::int64_t table_words_;
  Counter* count_ = nullptr;
};

}  // namespace

std::unique_ptr<Body> tally_cpu(const Op& op, const Problem& problem, const Context&) {
  std::unique_ptr<Body> body;
  dispatch(RealTypesAndBool{}, problem.inputs[0].dtype, "tally", "x", [&]<class T>(Type<T>) {
    body = std::make_unique<TallyCpu<T>>(op.settings<Tally>(), problem);
  });
  return body;
}

}  // namespace forebay
