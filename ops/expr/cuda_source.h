#pragma once

#include <string>

#include <forebay/ops/expr/loop_nest.h>

// The text of a program's kernel. Plain text, in every build.
namespace forebay::expr {

/// What the kernel and its launch agree on. The text depends on the instructions and on how the
/// arrays lie, not on extents, strides or addresses: those are in the kernel's only parameter, a
/// struct of 64-bit words in this order:
///   count, aligned,
///   strided form: the extents of the loop nest,
///   each leaf: address of index 0; when strided, its strides in elements,
///   each output: likewise.
struct CudaSource {
  std::string text;
  bool flat =
      true;  ///< every leaf is dense or one element, every output dense: no index arithmetic
  int pack =
      1;  ///< flat form: elements that a thread moves at once where all addresses are `aligned`
};

inline constexpr const char* kKernelName = "pointwise";
inline constexpr int kKernelThreads = 256;

/// `nest` has the outputs too.
CudaSource cuda_source(const Program& program, const LoopNest& nest);

}  // namespace forebay::expr
