#pragma once

#include <span>
#include <string_view>

#include <forebay/ops/expr/cpu_loops.h>

namespace forebay::expr {

/// The loops for one level of x86-64 (base, v3 with AVX2 and F16C, v4 with AVX-512; other
/// processors have base). They give the same bits at every level: only how many elements an
/// instruction takes differs.
struct CpuLevel {
  std::string_view name;
  CpuCopy* (*gather)(std::size_t size);
  CpuCopy* (*scatter)(std::size_t size);
  CpuLookup* (*lookup)(std::size_t size);
  /// The loop for `opcode` with operands of `operand` (for select: of the last two), which the
  /// checks of the language let through. Leaf and constant have none.
  CpuLoop* (*loop)(Opcode opcode, Dtype operand, Dtype result);
  /// One loop for two instructions of `dtype`, second(first(a, b), c); null where there is none.
  CpuLoop* (*loop_of_two)(Opcode first, Opcode second, Dtype dtype);
};

/// Those that this machine runs, lowest first.
std::span<const CpuLevel> cpu_levels();
/// The highest of them.
const CpuLevel& cpu_level();

}  // namespace forebay::expr
