#include <algorithm>
#include <array>
#include <type_traits>

#include <forebay/array/dispatch.h>
#include <forebay/array/parallel.h>
#include <forebay/ops/argmax/argmax.h>

namespace forebay {
namespace {

constexpr std::int64_t kTileElements = 4096;   // of a task, at least
constexpr std::int64_t kUnitElements = 65536;  // longer slices are cut
constexpr std::int64_t kMostColumns = 256;

/// What elements are compared as: exact.
template <class T>
using Key = std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>, float, T>;

/// Whether a later x takes the place of `best`: it is greater, or the first NaN.
template <class K>
bool exceeds(K x, K best) {
  if constexpr (std::is_floating_point_v<K>) return !(x <= best) && best == best;
  return x > best;
}

/// Units of slices.h each leave, for their columns, the position of the greatest element: in the
/// result where a unit has the whole slice, else in scratch, whose blocks are then merged in order.
template <class T>
class ArgmaxCpu final : public Body {
  using K = Key<T>;

 public:
  explicit ArgmaxCpu(const Slices& slices) : slices_(slices) {
    const std::int64_t columns = std::clamp<std::int64_t>(slices.columns, 1, kMostColumns);
    tiling_ = tile(slices, kMostColumns, kUnitElements / columns);
  }

  std::size_t scratch_bytes() const override {
    return tiling_.blocks == 1
               ? 0
               : sizeof(std::int64_t) * static_cast<std::size_t>(tiling_.blocks * slices_.count());
  }

  void run(std::span<const ArrayView> inputs, std::span<const ArrayView> outputs,
           const Launch& launch) override {
    const T* x = inputs[0].as<T>();
    std::int64_t* out = outputs[0].as<std::int64_t>();
    std::int64_t* found = tiling_.blocks == 1 ? out : static_cast<std::int64_t*>(launch.scratch);
    const std::int64_t elements = tiling_.chunk * tiling_.block;
    parallel_for(tiling_.units(slices_), 1 + kTileElements / elements,
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t i = begin; i < end; ++i) {
                     const std::int64_t block = i % tiling_.blocks;
                     const Unit unit = unit_of(slices_, tiling_, i);
                     search(x + unit.offset, unit, found + block * slices_.count() + unit.slice);
                   }
                 });
    if (tiling_.blocks > 1) merge(x, found, out);
  }

 private:
  /// `x` points to position 0 of the unit's first column.
  void search(const T* x, const Unit& unit, std::int64_t* found) const {
    if (slices_.columns == 1) {
      K best = static_cast<K>(x[unit.first]);
      std::int64_t position = unit.first;
      for (std::int64_t row = unit.first + 1; row < unit.last; ++row) {
        const K value = static_cast<K>(x[row]);
        if (exceeds(value, best)) {
          best = value;
          position = row;
        }
      }
      *found = position;
      return;
    }
    std::array<K, kMostColumns> best;
    for (std::int64_t row = unit.first; row < unit.last; ++row) {
      const T* values = x + row * slices_.columns;
      for (std::int64_t c = 0; c < unit.columns; ++c) {
        const K value = static_cast<K>(values[c]);
        if (row == unit.first || exceeds(value, best[c])) {
          best[c] = value;
          found[c] = row;
        }
      }
    }
  }

  void merge(const T* x, const std::int64_t* found, std::int64_t* out) const {
    parallel_for(slices_.count(), 1 + kTileElements / tiling_.blocks,
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t slice = begin; slice < end; ++slice) {
                     const T* values = x + slices_.group_offset(slice / slices_.columns) +
                                       slice % slices_.columns;
                     const auto value_at = [&](std::int64_t position) {
                       return static_cast<K>(values[position * slices_.columns]);
                     };
                     std::int64_t best = found[slice];
                     for (std::int64_t block = 1; block < tiling_.blocks; ++block) {
                       const std::int64_t position = found[block * slices_.count() + slice];
                       if (exceeds(value_at(position), value_at(best))) best = position;
                     }
                     out[slice] = best;
                   }
                 });
  }

  Slices slices_;
  Tiling tiling_;
};

}  // namespace

std::unique_ptr<Body> argmax_cpu(const Op& op, const Problem& problem, const Context&) {
  const ArraySpec& x = problem.inputs[0];
  const Slices slices = argmax_detail::searched_slices(op.settings<Argmax>(), x.shape);
  std::unique_ptr<Body> body;
  dispatch(RealTypesAndBool{}, x.dtype, "argmax", "x",
           [&]<class T>(Type<T>) { body = std::make_unique<ArgmaxCpu<T>>(slices); });
  return body;
}

}  // namespace forebay
