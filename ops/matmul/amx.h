#pragma once

#include <cstdint>
#include <memory>

#include <forebay/ops/matmul/product.h>

// Internal: products of bf16 numbers on processors with AMX (Intel, since 2023), where one
// instruction multiplies tiles of 16 x 32 by 32 x 16. Source: Intel 64 and IA-32 Architectures
// Software Developer's Manual, volume 1, chapter 18.
namespace forebay::amx {

/// Whether the processor has it and the system lets this process use it.
bool is_available();

/// Operands are packed in panels of 32 rows of x, or columns of other, each of k numbers, in the order in which they are
/// multiplied. What is missing to 32 along k is 0; missing rows and columns are anything. Sizes in numbers.
constexpr std::int64_t kPanel = 32;
constexpr std::int64_t padded(std::int64_t extent) {
  return (extent + kPanel - 1) / kPanel * kPanel;
}
constexpr std::int64_t packed_size(std::int64_t extent, std::int64_t k) {
  return padded(extent) * padded(k);
}

/// Rows first .. first + rows of x, which lie one behind the other at `from`, into x's panels.
void pack_rows(const BFloat16* from, std::int64_t first, std::int64_t rows, std::int64_t k,
               BFloat16* panels);

/// Rows first .. first + kPanel (or k) of other [k, columns], at `from`, into other's panels. `first` is a multiple of
/// kPanel.
void pack_inner(const BFloat16* from, std::int64_t first, std::int64_t k, std::int64_t columns,
                BFloat16* panels);

/// Rows first .. first + kPanel (or columns) of other's transpose [columns, k], likewise.
void pack_columns(const BFloat16* from, std::int64_t first, std::int64_t columns, std::int64_t k,
                  BFloat16* panels);

/// Packed operands. Panels of `other` may be longer than `k`: from panel to panel it is `other_pitch` numbers.
struct Operands {
  const BFloat16* x;
  const BFloat16* other;
  std::int64_t rows, columns, k, other_pitch;
};

/// sums, [padded(rows), pitch], of f32 = x times other, or += where it `adds`. Numbers below 2^-126 count as 0.
void multiply(const Operands& operands, float* sums, std::int64_t pitch, bool adds);

/// The body of a product of bf16 summed in f32.
std::unique_ptr<Body> prepare(const Product& product, const Matmul& settings,
                              const Problem& problem, const Context& context);

}  // namespace forebay::amx
