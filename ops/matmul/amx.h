#pragma once

#include <cstdint>

// Internal: products of bf16 numbers on processors with AMX (Intel, since 2023), where one instruction multiplies tiles
// of 16 x 32 by 32 x 16. Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, chapter 18.
namespace forebay::amx {

/// Whether the processor has it and the system lets this process use it.
bool is_available();

/// Row-major operands whose f32 numbers are bf16's; `x` is [rows, k], `other` [k, columns] or, transposed,
/// [columns, k]. Pitches: elements from row to row.
struct Operands {
  const float* x;
  const float* other;
  std::int64_t rows, columns, k, x_pitch, other_pitch;
  bool transposed;
};

/// out [rows, columns] = x times other, summed in f32, numbers below 2^-126 as 0.
void multiply(const Operands& operands, float* out, std::int64_t out_pitch);

}  // namespace forebay::amx
