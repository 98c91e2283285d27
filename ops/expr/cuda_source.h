#pragma once

#include <string>
#include <vector>

#include <forebay/ops/expr/cuda_walk.h>

// The text of a program's kernel. Plain text, in every build.
namespace forebay::expr {

/// What the kernel and its launch agree on. The text depends on the instructions and on how the arrays lie, not on
/// extents, strides or addresses: those are in the kernel's only parameter, a struct of 64-bit words.
struct CudaSource {
  std::string text;
  CudaWalk walk;
  /// The parameter. Known from the start, but for the words below, which a launch fills in.
  std::vector<std::uint64_t> words;
  /// Where each array's address is.
  std::vector<std::size_t> leaf_words, output_words;
  int threads = 256;        ///< of a block
  int items = 1;            ///< of form items, that a thread has in flight
  std::int64_t blocks = 0;  ///< form tiles
};

inline constexpr const char* kKernelName = "pointwise";

// ---- Form items.
/// The first words: packs to do; then the first and the end of the single elements (columns of `together` rows).
/// Where the walk is not flat, next: items in a row, and their Divisor.
inline constexpr std::size_t kPacksWord = 0, kFirstWord = 1, kEndWord = 2, kPerRowWord = 3;

// ---- Form tiles, the first words: whether a launch allows packs, and of the leaves that lie across.
inline constexpr std::size_t kPackedWord = 0, kWholeWord = 1;

CudaSource cuda_source(const Program& program, CudaWalk walk);

}  // namespace forebay::expr
