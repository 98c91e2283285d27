#pragma once

// Internal: one call of cuBLASLt, without its header.

#include <array>
#include <cstdint>
#include <memory>

#include <forebay/ops/matmul/product.h>

namespace forebay {

/// The product of a strided batch on CUDA, with the library's algorithm chosen for it.
class Gemm {
 public:
  /// The bytes that x, other and out are aligned to.
  using Alignments = std::array<std::uint32_t, 3>;
  /// 32 MiB is what NVIDIA recommends for Hopper and later.
  static constexpr std::size_t kWorkspace = std::size_t{32} << 20;

  /// Strides are from one product of the batch to the next, in elements. `may_measure`: where
  /// the product is large, the library's candidates are timed, once a machine, which waits
  /// for the device.
  /// Errors: unsupported when the library has no algorithm; device.
  Gemm(const Product& p, Dtype result, std::int64_t count, std::int64_t x_stride,
       std::int64_t other_stride, std::int64_t out_stride, const Alignments& alignments, int device,
       bool may_measure);
  ~Gemm();

  /// `one` and `zero` are factors in the type of the sum; `workspace` has kWorkspace bytes.
  void run(const void* x, const void* other, void* out, const void* one, const void* zero,
           void* workspace, const Stream& stream) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace forebay
