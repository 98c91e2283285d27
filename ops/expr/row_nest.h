#pragma once

#include <cstdint>
#include <vector>

#include <forebay/ops/expr/loop_nest.h>

// How the leaves of device code lie over rows: what at(i), row(r) and their packs go by.
namespace forebay::expr {

/// How a leaf lies over the rows: element (row, column) is at its place for the row plus
/// column * step.
struct Rows {
  std::int64_t step = 0;
  bool pitched = true;  ///< the place for row r is r * pitch; else it comes from the row's indices
  std::int64_t pitch = 0;
  Dims outer;  ///< strides over the axes of RowNest::outer
};

/// A program's shape as rows and columns: the last axis, and the others, as few as the
/// leaves allow.
struct RowNest {
  std::int64_t columns = 1;
  LoopNest outer;
  std::vector<Rows> leaves;
  bool any_unpitched = false;
};

RowNest row_nest(const Program& program);

}  // namespace forebay::expr
