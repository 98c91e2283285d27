#pragma once

#include <cstdint>

#include <forebay/array/dispatch.h>
#include <forebay/ops/expr/convert.h>
#include <forebay/ops/expr/expression.h>

namespace forebay::expr {

/// One instruction over `n` elements that lie dense in `a`, `b`, `c` (as many as it has operands)
/// and `out`, which overlaps none of them.
using CpuLoop = void(void* out, const void* a, const void* b, const void* c, std::int64_t n);

/// The loop for `opcode` with operands of `operand` (for select: of the last two), which the checks
/// of the language let through. Leaf and constant have none.
CpuLoop* cpu_loop(Opcode opcode, Dtype operand, Dtype result);

// One file each, so that each compiles in seconds. Null for an opcode or dtype of another file.
CpuLoop* cpu_cast_loop(Opcode opcode, Dtype from, Dtype to);
CpuLoop* cpu_arithmetic_loop(Opcode opcode, Dtype operand);
CpuLoop* cpu_math_loop(Opcode opcode, Dtype operand);
CpuLoop* cpu_compare_loop(Opcode opcode, Dtype operand);
CpuLoop* cpu_complex_loop(Opcode opcode, Dtype operand);

/// Element types of the language by group, for `dispatch`.
using IntegerTypes = Types<std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t, std::int8_t,
                           std::int16_t, std::int32_t, std::int64_t>;
using FloatTypes = Types<Half, BFloat16, float, double>;
using ComplexTypes = Types<std::complex<float>, std::complex<double>>;

/// out[i] = F{}(a[i], ..): elements as `load` gives them, the result rounded to `Out`.
template <class Out, class In, class F>
void loop1(void* out, const void* a, const void*, const void*, std::int64_t n) {
  auto* __restrict to = static_cast<Out*>(out);
  const auto* __restrict x = static_cast<const In*>(a);
  for (std::int64_t i = 0; i < n; ++i)
    to[i] = store<Out>(F{}(load(x[i])));
}
template <class Out, class In, class F>
void loop2(void* out, const void* a, const void* b, const void*, std::int64_t n) {
  auto* __restrict to = static_cast<Out*>(out);
  const auto* __restrict x = static_cast<const In*>(a);
  const auto* __restrict y = static_cast<const In*>(b);
  for (std::int64_t i = 0; i < n; ++i)
    to[i] = store<Out>(F{}(load(x[i]), load(y[i])));
}

}  // namespace forebay::expr
