#pragma once

#include <complex>
#include <cstdint>
#include <string>
#include <vector>

#include <forebay/array/cuda/kernel.h>
#include <forebay/ops/expr/device_code.h>
#include <forebay/ops/fft/transform.h>

// Transforms of rows on chip in one generated kernel, with what is fused before and after them
// (fft_rows.cu): which there are, how a row is cut into passes over threads, and the kernel's text.
// Plain code, in every build.
namespace forebay::dft {

/// Radix-`radix` transforms of the `lines` lines of a row, after passes whose radices
/// multiply to `before`.
struct RowPass {
  int radix = 1;
  int before = 1;
  int lines = 1;
  bool pairs = false;  ///< a thread's lines are j and lines - j in turn, else every threads-th
  int each = 1;        ///< lines of a thread
  /// The number of thread t's line b; from `lines` on there is none.
  int line(int t, int b, int threads) const;
};

/// In shared memory `gap` elements are left out after every `every`, against bank conflicts.
struct Padding {
  int every = 1;
  int gap = 0;
  int place(int i) const { return i + i / every * gap; }
};

struct RowsPlan {
  int length = 1;   ///< points of the complex transform of a row
  int threads = 1;  ///< of a row
  int rows = 1;     ///< of a block
  std::vector<RowPass> passes;
  std::vector<Padding> exchanges;   ///< between pass i and i + 1
  int row_words = 1;                ///< elements of shared memory from row to row
  bool halves = false;              ///< real numbers of even length: neighbours are one point
  bool split_in_registers = false;  ///< r2c of halves: how partners meet after the last pass
  bool together = false;  ///< the rows of a block are written side by side, from shared memory

  int elements() const;  ///< of a thread, at most
};

/// Whether the kernel can be made: along the last axis, n of factors 2, 3, 5 and 7, a row on chip.
bool rows_fit(const Transform& transform);
/// For a transform that fits, whose elements lie in memory in `stored_bytes` each.
RowsPlan plan_rows(const Transform& transform, std::size_t stored_bytes);

/// The twiddles that the kernel reads, in its order, rounded from f64.
std::vector<std::complex<double>> row_roots(const Transform& transform, const RowsPlan& plan);
/// The kernel `fft_rows`: what is put before and after the text of fft_rows.cu.
struct RowsSource {
  std::string constants, kernel;
};
RowsSource rows_source(const Transform& transform, const RowsPlan& plan);

/// In builds with CUDA: that kernel with the neighbours, structs `Load` and `Store`, put before it;
/// and the body that runs it.
cuda::KernelSource rows_kernel(const Transform& transform, const RowsPlan& plan,
                               const expr::DeviceCode& load, const expr::DeviceCode& store);
std::unique_ptr<Body> prepare_rows(const Transform& transform, const Problem& problem,
                                   const Context& context);

}  // namespace forebay::dft
