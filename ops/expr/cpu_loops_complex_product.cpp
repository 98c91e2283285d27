#include <cmath>

#include <forebay/ops/expr/cpu_loops.h>

// Products and quotients of complex numbers by the plain formulas, the same on every device (the
// library's own `*` and `/` add recoveries of infinities).
namespace forebay::expr::FOREBAY_CPU_LEVEL {
namespace {

struct Mul {
  template <class C>
  C operator()(C a, C b) const {
    return C(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
  }
};
/// Smith's, as NumPy's: by the larger part of the divisor, so that its square cannot overflow.
struct Div {
  template <class C>
  C operator()(C a, C b) const {
    using R = typename C::value_type;
    const R re = std::abs(b.real()), im = std::abs(b.imag());
    if (re == 0 && im == 0) return C(a.real() / re, a.imag() / im);
    if (re >= im) {
      const R ratio = b.imag() / b.real(), scale = 1 / (b.real() + b.imag() * ratio);
      return C((a.real() + a.imag() * ratio) * scale, (a.imag() - a.real() * ratio) * scale);
    }
    const R ratio = b.real() / b.imag(), scale = 1 / (b.imag() + b.real() * ratio);
    return C((a.real() * ratio + a.imag()) * scale, (a.imag() * ratio - a.real()) * scale);
  }
};

template <class C>
CpuLoop* loop_of(Opcode opcode) {
  if (opcode == Opcode::mul) return loop2<C, C, Mul>;
  if (opcode == Opcode::div) return loop2<C, C, Div>;
  return nullptr;
}

}  // namespace

CpuLoop* complex_product_loop(Opcode opcode, Dtype operand) {
  return loop_for(ComplexTypes{}, operand, [&]<class C>(Type<C>) { return loop_of<C>(opcode); });
}

}  // namespace forebay::expr::FOREBAY_CPU_LEVEL
