#pragma once

#include <vector>

#include <forebay/ops/expr/expression.h>

namespace forebay::expr {

/// operand * factor + shift in one fused multiply-add.
struct ExactFma {
  int operand = -1;  ///< -1: it is none
  double factor = 1, shift = 0;
};
/// A product and a sum in f32, such as (x - 1) / 2 and x / 2 - 0.5, of which a fused multiply-add has
/// the bits: instruction `number` and the one before it.
ExactFma exact_fma(const Program& program, int number);

/// Which instructions are still read when those are taken in one.
std::vector<bool> needed_with_fma(const Program& program);

}  // namespace forebay::expr
