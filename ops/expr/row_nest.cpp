#include <forebay/ops/expr/row_nest.h>

namespace forebay::expr {

RowNest row_nest(const Program& program) {
  RowNest nest;
  Program outer{.shape = program.shape, .leaves = program.leaves, .code = {}, .outputs = {}};
  const int last = program.shape.rank - 1;
  if (last >= 0) {
    nest.columns = program.shape[last];
    outer.shape.rank = last;
    for (Program::Leaf& leaf : outer.leaves)
      leaf.strides.rank = last;
  }
  nest.outer = loop_nest(outer, {});
  const Dims dense = dense_strides(nest.outer.shape);
  for (std::size_t i = 0; i < program.leaves.size(); ++i) {
    Rows rows;
    rows.step = last >= 0 ? program.leaves[i].strides[last] : 0;
    rows.outer = nest.outer.leaves[i];
    rows.pitch = rows.outer[rows.outer.rank - 1];
    for (int axis = 0; axis < dense.rank; ++axis)
      rows.pitched &= rows.outer[axis] == rows.pitch * dense[axis];
    nest.any_unpitched |= !rows.pitched;
    nest.leaves.push_back(rows);
  }
  return nest;
}

}  // namespace forebay::expr
