#pragma once

#include <span>
#include <vector>

#include <forebay/ops/expr/expression.h>

namespace forebay::expr {

/// The axes of a program, as few as the layouts of its leaves and outputs allow: axes of extent 1
/// are gone and neighbours that every array passes through in one go are one.
struct LoopNest {
  Dims shape;                ///< rank 1 at least
  std::vector<Dims> leaves;  ///< strides in elements, one for each leaf
  std::vector<Dims> outputs;
  std::int64_t count = 0;

  bool is_dense(const Dims& strides) const { return strides == dense_strides(shape); }
  static bool is_scalar(const Dims& strides);
};

/// `output_strides` are over the program's shape, one for each output.
LoopNest loop_nest(const Program& program, std::span<const Dims> output_strides);
/// With dense outputs.
LoopNest loop_nest(const Program& program);

/// Whether every offset, in elements, and the number of elements fit in an i32.
bool fits_32_bits(const LoopNest& nest);

}  // namespace forebay::expr
