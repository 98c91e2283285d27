#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include <forebay/array/parallel.h>
#include <forebay/ops/slices.h>

namespace forebay::histogram_detail {

/// The units of slices.h as the CPU body goes over them.
struct CpuUnits {
  static constexpr std::int64_t kTileElements = 4096;

  Slices slices;
  Tiling tiling;

  std::size_t columns_of_units() const {
    return static_cast<std::size_t>(tiling.units(slices) * tiling.chunk);
  }
  /// The unit that has the slice's first block, and the slice's column in it.
  std::pair<std::int64_t, std::int64_t> place_of(std::int64_t slice) const {
    const std::int64_t group = slice / slices.columns, column = slice % slices.columns;
    return {(group * tiling.chunks + column / tiling.chunk) * tiling.blocks, column % tiling.chunk};
  }

  template <class Visit>
  void for_units(Visit&& visit) const {
    const std::int64_t elements =
        std::max<std::int64_t>(1, tiling.chunk * std::min(tiling.block, slices.length()));
    parallel_for(tiling.units(slices), std::max<std::int64_t>(1, kTileElements / elements),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t i = begin; i < end; ++i)
                     visit(i, unit_of(slices, tiling, i));
                 });
  }

  /// Calls visit(offset, rows) for pieces of the unit that lie dense and fit a tile.
  template <class Visit>
  void for_tiles(const Unit& unit, Visit&& visit) const {
    const std::int64_t most = kTileElements / unit.columns;
    for_dense_runs(slices, unit, unit.first, unit.last,
                   [&](std::int64_t offset, std::int64_t rows) {
                     for (std::int64_t row = 0; row < rows; row += most)
                       visit(offset + row * unit.columns, std::min(most, rows - row));
                   });
  }
};

}  // namespace forebay::histogram_detail
