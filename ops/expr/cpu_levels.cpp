#include <forebay/ops/expr/cpu_levels.h>

#include <vector>

namespace forebay::expr {

#define FOREBAY_DECLARE_LEVEL(level)                                                            \
  namespace level {                                                                             \
  CpuLoop* cast_loop(Opcode opcode, Dtype from, Dtype to);                                      \
  CpuLoop* arithmetic_loop(Opcode opcode, Dtype operand);                                       \
  CpuLoop* math_loop(Opcode opcode, Dtype operand);                                             \
  CpuLoop* compare_loop(Opcode opcode, Dtype operand);                                          \
  CpuLoop* complex_loop(Opcode opcode, Dtype operand);                                          \
  CpuLoop* complex_product_loop(Opcode opcode, Dtype operand);                                  \
  CpuLoop* random_loop(Opcode opcode, Dtype operand);                                           \
  CpuLoop* loop_of_two(Opcode first, Opcode second, Dtype dtype);                               \
  CpuCopy* gather_loop(std::size_t size);                                                       \
  CpuCopy* scatter_loop(std::size_t size);                                                      \
  CpuLookup* lookup_loop(std::size_t size);                                                     \
  const CpuLevel kLevel{#level,                                                                 \
                        gather_loop,                                                            \
                        scatter_loop,                                                           \
                        lookup_loop,                                                            \
                        find<cast_loop, compare_loop, arithmetic_loop, math_loop, complex_loop, \
                             complex_product_loop, random_loop>,                                \
                        loop_of_two};                                                           \
  }

namespace {
template <auto Cast, auto... Others>
CpuLoop* find(Opcode opcode, Dtype operand, Dtype result) {
  if (CpuLoop* loop = Cast(opcode, operand, result)) return loop;
  CpuLoop* loop = nullptr;
  (void)((loop = Others(opcode, operand), loop != nullptr) || ...);
  return loop;
}
}  // namespace

FOREBAY_DECLARE_LEVEL(base)
#if defined(__x86_64__)
FOREBAY_DECLARE_LEVEL(v3)
FOREBAY_DECLARE_LEVEL(v4)
#endif

std::span<const CpuLevel> cpu_levels() {
  static const std::vector<CpuLevel> levels = [] {
    std::vector<CpuLevel> result{base::kLevel};
#if defined(__x86_64__)
    if (__builtin_cpu_supports("x86-64-v3")) result.push_back(v3::kLevel);
    if (__builtin_cpu_supports("x86-64-v4")) result.push_back(v4::kLevel);
#endif
    return result;
  }();
  return levels;
}

const CpuLevel& cpu_level() { return cpu_levels().back(); }

}  // namespace forebay::expr
