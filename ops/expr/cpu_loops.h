#pragma once

#include <algorithm>
#include <cstdint>

#include <forebay/array/dispatch.h>
#include <forebay/ops/expr/convert.h>
#include <forebay/ops/expr/expression.h>

// The files cpu_loops_*.cpp are compiled once for each level of the processor (see cpu_levels.h), each time into a
// namespace of its own, so that no function of one level can stand in for that of another.
#ifndef FOREBAY_CPU_LEVEL
#define FOREBAY_CPU_LEVEL base
#endif

namespace forebay::expr {

/// Elements of an operand that is the same everywhere in a tile: loops go over the tile in chunks.
inline constexpr std::int64_t kChunk = 256;

struct Operand {
  const void* data = nullptr;
  bool uniform = false;  ///< kChunk equal elements (fewer when the tile is shorter) instead of n
};

/// One instruction over `n` elements that lie dense in its operands and `out`, which overlaps none of them.
using CpuLoop = void(void* out, const Operand* operands, std::int64_t n);
/// Between `n` elements, `stride` elements apart, and dense ones: a gather to, or a scatter from, dense memory.
using CpuCopy = void(void* to, const void* from, std::int64_t stride, std::int64_t n);

namespace FOREBAY_CPU_LEVEL {

// One file each, so that each compiles in seconds. Null for an opcode or dtype of another file.
CpuLoop* cast_loop(Opcode opcode, Dtype from, Dtype to);
CpuLoop* arithmetic_loop(Opcode opcode, Dtype operand);
CpuLoop* math_loop(Opcode opcode, Dtype operand);
CpuLoop* compare_loop(Opcode opcode, Dtype operand);
CpuLoop* complex_loop(Opcode opcode, Dtype operand);
/// For elements of 1, 2, 4, 8 or 16 bytes.
CpuCopy* gather_loop(std::size_t size);
CpuCopy* scatter_loop(std::size_t size);

/// Element types of the language by group, for `dispatch`.
using IntegerTypes = Types<std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t, std::int8_t,
                           std::int16_t, std::int32_t, std::int64_t>;
using FloatTypes = Types<Half, BFloat16, float, double>;
using ComplexTypes = Types<std::complex<float>, std::complex<double>>;

/// Calls `chunk(first, count)` over 0..n.
template <class Chunk>
void for_chunks(std::int64_t n, const Chunk& chunk) {
  for (std::int64_t first = 0; first < n; first += kChunk)
    chunk(first, std::min(kChunk, n - first));
}

template <class T>
const T* at(const Operand& operand, std::int64_t first) {
  return static_cast<const T*>(operand.data) + (operand.uniform ? 0 : first);
}

/// out[i] = F{}(a[i], ..): elements as `load` gives them, the result rounded to `Out`.
template <class Out, class In, class F>
void loop1(void* out, const Operand* operands, std::int64_t n) {
  for_chunks(n, [&](std::int64_t first, std::int64_t count) {
    Out* __restrict to = static_cast<Out*>(out) + first;
    const In* __restrict x = at<In>(operands[0], first);
    for (std::int64_t i = 0; i < count; ++i)
      to[i] = store<Out>(F{}(load(x[i])));
  });
}
template <class Out, class In, class F>
void loop2(void* out, const Operand* operands, std::int64_t n) {
  for_chunks(n, [&](std::int64_t first, std::int64_t count) {
    Out* __restrict to = static_cast<Out*>(out) + first;
    const In* __restrict x = at<In>(operands[0], first);
    const In* __restrict y = at<In>(operands[1], first);
    for (std::int64_t i = 0; i < count; ++i)
      to[i] = store<Out>(F{}(load(x[i]), load(y[i])));
  });
}

}  // namespace FOREBAY_CPU_LEVEL
}  // namespace forebay::expr
