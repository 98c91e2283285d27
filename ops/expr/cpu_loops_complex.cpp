#include <cmath>

#include <forebay/ops/expr/cpu_loops.h>

// Complex numbers part by part; their products and quotients have a file of their own.
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

// Read and written as pairs of real numbers, which become vector code; as structures they do not.
template <class C>
using Part = typename C::value_type;

template <class C>
C pair_at(const Part<C>* x, std::int64_t i) {
  return C(x[2 * i], x[2 * i + 1]);
}
template <class R>
void put(R* to, std::int64_t i, R value) {
  to[i] = value;
}
template <class R>
void put(R* to, std::int64_t i, std::complex<R> value) {
  to[2 * i] = value.real();
  to[2 * i + 1] = value.imag();
}

template <class C, class F>
void complex_loop1(void* out, const Operand* operands, std::int64_t n) {
  using Result = decltype(F{}(C{}));
  for_chunks(n, [&](std::int64_t first, std::int64_t count) {
    auto* __restrict to = reinterpret_cast<Part<C>*>(static_cast<Result*>(out) + first);
    const auto* __restrict x = reinterpret_cast<const Part<C>*>(at<C>(operands[0], first));
    for (std::int64_t i = 0; i < count; ++i)
      put(to, i, F{}(pair_at<C>(x, i)));
  });
}
template <class C, class F>
void complex_loop2(void* out, const Operand* operands, std::int64_t n) {
  for_chunks(n, [&](std::int64_t first, std::int64_t count) {
    auto* __restrict to = reinterpret_cast<Part<C>*>(static_cast<C*>(out) + first);
    const auto* __restrict x = reinterpret_cast<const Part<C>*>(at<C>(operands[0], first));
    const auto* __restrict y = reinterpret_cast<const Part<C>*>(at<C>(operands[1], first));
    for (std::int64_t i = 0; i < count; ++i)
      put(to, i, F{}(pair_at<C>(x, i), pair_at<C>(y, i)));
  });
}

template <class C>
CpuLoop* loop_of(Opcode opcode) {
  switch (opcode) {
    case Opcode::add:
      return complex_loop2<C, Add>;
    case Opcode::sub:
      return complex_loop2<C, Sub>;
    case Opcode::neg:
      return complex_loop1<C, Neg>;
    case Opcode::conj:
      return complex_loop1<C, Conj>;
    case Opcode::abs:
      return complex_loop1<C, Abs>;
    case Opcode::real:
      return complex_loop1<C, Real>;
    case Opcode::imag:
      return complex_loop1<C, Imag>;
    case Opcode::norm:
      return complex_loop1<C, Norm>;
    default:
      return nullptr;
  }
}

}  // namespace

CpuLoop* complex_loop(Opcode opcode, Dtype operand) {
  return loop_for(ComplexTypes{}, operand, [&]<class C>(Type<C>) { return loop_of<C>(opcode); });
}

}  // namespace forebay::expr::FOREBAY_CPU_LEVEL
