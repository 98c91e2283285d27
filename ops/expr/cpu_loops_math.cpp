#include <cmath>

#include <forebay/ops/expr/cpu_loops.h>
#include <forebay/ops/expr/elementary.h>

// Functions of floats; f16 and bf16 through f32.
namespace forebay::expr::FOREBAY_CPU_LEVEL {
namespace {

template <class T, class F>
CpuLoop* one(F) {
  return loop1<T, T, F>;
}

template <class T>
CpuLoop* loop_of(Opcode opcode) {
  switch (opcode) {
    case Opcode::sqrt:
      return one<T>([](auto x) { return std::sqrt(x); });
    case Opcode::exp:
      return one<T>([](auto x) { return exponential(x); });
    case Opcode::expm1:
      return one<T>([](auto x) { return std::expm1(x); });
    case Opcode::log:
      return one<T>([](auto x) { return logarithm(x); });
    case Opcode::log1p:
      return one<T>([](auto x) { return logarithm1p(x); });
    case Opcode::log2:
      return one<T>([](auto x) { return std::log2(x); });
    case Opcode::log10:
      return one<T>([](auto x) { return std::log10(x); });
    case Opcode::sin:
      return one<T>([](auto x) { return std::sin(x); });
    case Opcode::cos:
      return one<T>([](auto x) { return std::cos(x); });
    case Opcode::tanh:
      return one<T>([](auto x) { return std::tanh(x); });
    case Opcode::floor:
      return one<T>([](auto x) { return std::floor(x); });
    case Opcode::ceil:
      return one<T>([](auto x) { return std::ceil(x); });
    case Opcode::round_even:
      return one<T>([](auto x) { return std::nearbyint(x); });
    case Opcode::pow: {
      constexpr auto kPow = [](auto x, auto y) { return std::pow(x, y); };
      return loop2<T, T, std::remove_const_t<decltype(kPow)>>;
    }
    default:
      return nullptr;
  }
}

}  // namespace

CpuLoop* math_loop(Opcode opcode, Dtype operand) {
  return loop_for(FloatTypes{}, operand, [&]<class T>(Type<T>) { return loop_of<T>(opcode); });
}

}  // namespace forebay::expr::FOREBAY_CPU_LEVEL
