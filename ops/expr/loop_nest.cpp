#include <forebay/ops/expr/loop_nest.h>

#include <algorithm>

namespace forebay::expr {

bool LoopNest::is_scalar(const Dims& strides) {
  return std::all_of(strides.begin(), strides.end(),
                     [](std::int64_t stride) { return stride == 0; });
}

LoopNest loop_nest(const Program& program, std::span<const Dims> output_strides) {
  LoopNest nest;
  nest.count = count_of(program.shape);
  nest.leaves.resize(program.leaves.size());
  nest.outputs.resize(output_strides.size());
  const Dims& shape = program.shape;
  // Each array's strides beside the ones collected for it.
  std::vector<std::pair<const Dims*, Dims*>> arrays;
  for (std::size_t i = 0; i < nest.leaves.size(); ++i)
    arrays.emplace_back(&program.leaves[i].strides, &nest.leaves[i]);
  for (std::size_t i = 0; i < nest.outputs.size(); ++i)
    arrays.emplace_back(&output_strides[i], &nest.outputs[i]);

  for (int axis = 0; axis < shape.rank; ++axis) {
    if (shape[axis] == 1) continue;
    const int last = nest.shape.rank - 1;
    const bool merges =
        last >= 0 && std::all_of(arrays.begin(), arrays.end(), [&](const auto& array) {
          return (*array.second)[last] == (*array.first)[axis] * shape[axis];
        });
    if (merges) {
      nest.shape[last] *= shape[axis];
    } else {
      nest.shape.push_back(shape[axis]);
    }
    for (const auto& [all, collected] : arrays) {
      if (!merges) collected->push_back(0);
      (*collected)[nest.shape.rank - 1] = (*all)[axis];
    }
  }
  if (nest.shape.rank == 0) {  // a single element lies dense, wherever it is
    nest.shape = {1};
    for (const auto& array : arrays)
      *array.second = {1};
  }
  return nest;
}

LoopNest loop_nest(const Program& program) {
  const std::vector<Dims> dense(program.outputs.size(), dense_strides(program.shape));
  return loop_nest(program, dense);
}

bool fits_32_bits(const LoopNest& nest) {
  constexpr std::int64_t kMost = INT32_MAX;
  if (nest.count > kMost) return false;
  const auto fits = [&](const Dims& strides) {
    std::int64_t reach = 0;
    for (int axis = 0; axis < nest.shape.rank; ++axis) {
      // Each stride too, since the kernel narrows it; an extent of 1 leaves it without a reach.
      if (std::abs(strides[axis]) > kMost) return false;
      reach += std::abs(strides[axis]) * (nest.shape[axis] - 1);
      if (reach > kMost) return false;
    }
    return true;
  };
  return std::all_of(nest.leaves.begin(), nest.leaves.end(), fits) &&
         std::all_of(nest.outputs.begin(), nest.outputs.end(), fits);
}

}  // namespace forebay::expr
