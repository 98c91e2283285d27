#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <forebay/array/view.h>

// What ops that reduce over axes (statistics, histogram) share: how a user names the axes, and how
// the array then falls into slices. slices.cu is the device's half of it.
namespace forebay {

/// What the axes of a batch mean: N samples, C channels, H and W image, L time. Names the channel
/// axis.
enum class Layout : std::uint8_t { none, nchw, nhwc, ncl, nc };
std::span<const std::string_view> names_of(Layout);

/// The axis of C in `layout`. Errors: invalid when `shape` has not the rank of `layout`, with the
/// op's name first.
int channel_axis(std::string_view op, Layout layout, const Dims& shape);

/// Axis i is in the set when bit i is set.
using AxisSet = std::uint32_t;
constexpr bool has_axis(AxisSet set, int axis) { return (set >> axis & 1) != 0; }
constexpr AxisSet all_axes(int rank) { return (AxisSet{1} << rank) - 1; }

/// The axes of `x` that a reduction runs over: `axes` (NumPy's meaning) when given; all but the
/// channels of `layout` when that is given; all of them otherwise. `per_sample` keeps axis 0
/// besides. Errors: invalid for an axis that is not there or named twice, for `axes` together with
/// `layout`, and for `per_sample` where axis 0 is among `axes` or missing.
AxisSet reduced_axes(std::string_view op, const std::optional<std::vector<std::int64_t>>& axes,
                     Layout layout, bool per_sample, const Dims& shape);

/// The extents of the axes that are not in `reduced`.
Dims kept_shape(const Dims& shape, AxisSet reduced);

/// A dense array cut into slices: one for each index of the kept axes, in row-major order, each
/// with every position of the reduced axes, in row-major order. Neighbouring axes of one kind count
/// as one axis. Plain data for kernels.
struct Slices {
  struct Axis {
    std::int64_t extent = 1;
    std::int64_t stride = 0;  ///< in elements
  };
  std::int64_t columns = 1;  ///< innermost kept axis: neighbours in memory are in different slices
  std::int64_t rows = 1;     ///< innermost reduced axis: `columns` elements apart
  std::int64_t groups = 1;   ///< indices of the other kept axes: slice = group * columns + column
  /// Positions on the other reduced axes: position = outer position * rows + row.
  std::int64_t outer = 1;
  std::int64_t kept_count = 0;
  std::int64_t reduced_count = 0;
  Axis kept[kMaxRank / 2];     ///< innermost first, without the columns
  Axis reduced[kMaxRank / 2];  ///< innermost first, without the rows

  std::int64_t count() const { return groups * columns; }
  std::int64_t length() const { return outer * rows; }
  /// Elements from the array's first to column 0, position 0 of a group.
  std::int64_t group_offset(std::int64_t group) const { return offset_of(group, kept, kept_count); }

  /// Calls `visit(offset, rows)` for the runs of positions `first`..`last` (of a group at offset
  /// 0), in order: `rows` positions, `columns` elements apart.
  template <class Visit>
  void for_runs(std::int64_t first, std::int64_t last, Visit&& visit) const {
    while (first < last) {
      const std::int64_t outside = first / rows, row = first % rows;
      const std::int64_t run = std::min(rows - row, last - first);
      visit(offset_of(outside, reduced, reduced_count) + row * columns, run);
      first += run;
    }
  }

 private:
  static std::int64_t offset_of(std::int64_t index, const Axis* axes, std::int64_t count) {
    std::int64_t offset = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      offset += index % axes[i].extent * axes[i].stride;
      index /= axes[i].extent;
    }
    return offset;
  }
};

Slices slices_of(const Dims& shape, AxisSet reduced);

/// How the work on slices is cut into units: `chunk` neighbouring columns x `block` positions each.
/// The cut depends on the shape alone, so that results merged by unit have the same bits on any
/// number of threads and any model of GPU.
struct Tiling {
  std::int64_t chunk = 1;   ///< columns of a unit; the last of a group may have fewer
  std::int64_t chunks = 1;  ///< units side by side in a group
  std::int64_t block = 1;   ///< positions of a unit; the last of a slice may have fewer
  std::int64_t blocks = 1;  ///< units along a slice

  /// unit = (group * chunks + chunk) * blocks + block
  std::int64_t units(const Slices& slices) const { return slices.groups * chunks * blocks; }
};

/// At most `chunk` columns (evened out over the chunks of a group) and `block` positions a unit.
Tiling tile(const Slices& slices, std::int64_t chunk, std::int64_t block);

/// One unit of a tiling.
struct Unit {
  std::int64_t group = 0;
  std::int64_t column = 0;  ///< the first
  std::int64_t columns = 1;
  std::int64_t first = 0, last = 0;  ///< positions
  std::int64_t slice = 0;            ///< of the first column
  std::int64_t offset = 0;           ///< elements to that column's position 0
};
Unit unit_of(const Slices& slices, const Tiling& tiling, std::int64_t unit);

/// Calls `visit(offset, rows)` for the runs of positions `first`..`last` of a unit, in order: rows
/// x unit.columns elements that lie dense in memory.
template <class Visit>
void for_dense_runs(const Slices& slices, const Unit& unit, std::int64_t first, std::int64_t last,
                    Visit&& visit) {
  slices.for_runs(first, last, [&](std::int64_t offset, std::int64_t rows) {
    if (unit.columns == slices.columns) {
      visit(unit.offset + offset, rows);
    } else {
      for (std::int64_t row = 0; row < rows; ++row)
        visit(unit.offset + offset + row * slices.columns, 1);
    }
  });
}

}  // namespace forebay
