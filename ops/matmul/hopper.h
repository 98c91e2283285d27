#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <forebay/array/cuda/kernel.h>
#include <forebay/ops/expr/device_code.h>
#include <forebay/ops/matmul/product.h>

// Our own product for compute capability 9.0 (matmul_hopper.cu): which there are, and the kernel's text. Plain code, in
// every build.
namespace forebay::hopper {

/// How the kernel makes a product: tiles of 128 rows by `columns`, units of 32 inner elements in two rings.
struct Plan {
  Dtype operand = Dtype::bf16;  ///< f32: tf32
  Dtype stored = Dtype::f32;
  std::int64_t columns = 256;
  std::int64_t tiles = 2;                   ///< along a row, even: two blocks share x
  std::int64_t ring_x = 3, ring_other = 3;  ///< units
  std::size_t x_bytes = 4;                  ///< of an element of x in memory
  std::size_t x_unit() const { return 128 * 32 * x_bytes; }
  std::size_t other_unit() const {
    return static_cast<std::size_t>(columns) * 32 * size_of(operand);
  }
  std::size_t shared_bytes() const;
};

/// Whether the product, by a constant, is one that the kernel makes, and faster than a pass over x and the library: bf16,
/// f16 or tf32, of one matrix, with K a multiple of 64 and N of 8, enough tiles for all multiprocessors, and for bf16 and
/// f16 an x of another dtype and at most 1280 columns.
bool fits(const Product& product);

/// For a product that fits, which leaf of x's program the kernel copies: the one array as large as x, whose elements have 1,
/// 2 or 4 bytes, where the others are a number, one a row or one a column, and the work on an element is less than
/// the tensor cores'. Nothing: a pass over x comes first.
std::optional<std::size_t> staged_leaf(const Product& product, const expr::Program& x);

/// For a product that fits and an x of which a leaf is staged.
Plan plan(const Product& product, std::size_t x_bytes);

/// A minimum or maximum with a number.
struct Clip {
  expr::Opcode opcode;
  std::uint32_t two;  ///< the number as the operand, twice
};

/// Takes off x's end the clips of f32 that the kernel does after rounding, to two values at once; in their order. Rounding
/// keeps the order of numbers, so that the bits are the same. None for tf32.
std::vector<Clip> take_clips(expr::Program& x, Dtype operand);

/// `multiply` of matmul_hopper.cu: one instruction with as many sums as a thread has.
std::string multiply_text(const Plan& plan);

/// `clipped` of matmul_hopper.cu.
std::string clipped_text(const std::vector<Clip>& clips, Dtype operand);

/// In builds with CUDA. `x` without `clips`. `staged`: the leaf; nothing where the addresses of x or the result are no multiples of 16 bytes.
cuda::KernelSource product_kernel(const Plan& plan, const expr::DeviceCode& x,
                                  const std::vector<Clip>& clips,
                                  std::optional<std::size_t> staged);
/// Packs the constant, [K, N] or its transpose.
cuda::KernelSource pack_kernel(const Plan& plan);

/// The body. Null where `x` is not one that the kernel takes.
std::unique_ptr<Body> prepare(const Product& product, const Matmul& settings,
                              const Problem& problem, const Context& context);

}  // namespace forebay::hopper
