#include <cmath>

#include <forebay/ops/expr/cpu_loops.h>

// Complex arithmetic by the plain formulas, the same on every device (the library's own `*` and `/`
// add recoveries of infinities).
namespace forebay::expr::FOREBAY_CPU_LEVEL {
namespace {

struct Add {
  template <class C>
  C operator()(C a, C b) const {
    return C(a.real() + b.real(), a.imag() + b.imag());
  }
};
struct Sub {
  template <class C>
  C operator()(C a, C b) const {
    return C(a.real() - b.real(), a.imag() - b.imag());
  }
};
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

struct Neg {
  template <class C>
  C operator()(C a) const {
    return C(-a.real(), -a.imag());
  }
};
struct Conj {
  template <class C>
  C operator()(C a) const {
    return C(a.real(), -a.imag());
  }
};
struct Real {
  template <class C>
  auto operator()(C a) const {
    return a.real();
  }
};
struct Imag {
  template <class C>
  auto operator()(C a) const {
    return a.imag();
  }
};
struct Norm {
  template <class C>
  auto operator()(C a) const {
    return a.real() * a.real() + a.imag() * a.imag();
  }
};
/// c64 in f64, where the squares neither overflow nor vanish: one correct rounding and one more,
/// the same everywhere.
struct Abs {
  float operator()(std::complex<float> a) const {
    const double re = a.real(), im = a.imag();
    const float length = static_cast<float>(std::sqrt(re * re + im * im));
    const bool infinite = std::isinf(a.real()) || std::isinf(a.imag());
    return infinite ? std::numeric_limits<float>::infinity() : length;
  }
  double operator()(std::complex<double> a) const { return std::hypot(a.real(), a.imag()); }
};

template <class C>
CpuLoop* loop_of(Opcode opcode) {
  using R = typename C::value_type;
  switch (opcode) {
    case Opcode::add:
      return loop2<C, C, Add>;
    case Opcode::sub:
      return loop2<C, C, Sub>;
    case Opcode::mul:
      return loop2<C, C, Mul>;
    case Opcode::div:
      return loop2<C, C, Div>;
    case Opcode::neg:
      return loop1<C, C, Neg>;
    case Opcode::conj:
      return loop1<C, C, Conj>;
    case Opcode::abs:
      return loop1<R, C, Abs>;
    case Opcode::real:
      return loop1<R, C, Real>;
    case Opcode::imag:
      return loop1<R, C, Imag>;
    case Opcode::norm:
      return loop1<R, C, Norm>;
    default:
      return nullptr;
  }
}

}  // namespace

CpuLoop* complex_loop(Opcode opcode, Dtype operand) {
  CpuLoop* loop = nullptr;
  if (!is_complex(operand)) return loop;
  dispatch(ComplexTypes{}, operand, "complex", "operand",
           [&]<class C>(Type<C>) { loop = loop_of<C>(opcode); });
  return loop;
}

}  // namespace forebay::expr::FOREBAY_CPU_LEVEL
