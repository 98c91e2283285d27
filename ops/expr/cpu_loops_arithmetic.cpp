#include <forebay/ops/expr/cpu_loops.h>
#include <forebay/ops/expr/divide.h>

// neg, abs, sign, + - * /, pow of integers, minimum and maximum.
namespace forebay::expr::FOREBAY_CPU_LEVEL {
namespace {

/// Integers compute modulo 2^bits, in an unsigned type that C++ does not promote to a signed one.
template <class T>
using Wrapping = std::conditional_t<(sizeof(T) < 4), std::uint32_t, std::make_unsigned_t<T>>;

template <class T, class F>
T wrapping(F compute, T a, T b) {
  using U = Wrapping<T>;
  return static_cast<T>(compute(static_cast<U>(a), static_cast<U>(b)));
}

struct Add {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>)
      return wrapping([](auto x, auto y) { return x + y; }, a, b);
    else
      return a + b;
  }
};
struct Sub {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>)
      return wrapping([](auto x, auto y) { return x - y; }, a, b);
    else
      return a - b;
  }
};
struct Mul {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>)
      return wrapping([](auto x, auto y) { return x * y; }, a, b);
    else
      return a * b;
  }
};

/// Integers: the floor of the quotient, as NumPy's `//`; 0 for a divisor of 0, and the one overflow
/// wraps.
struct Div {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      if (b == 0) return 0;
      if constexpr (std::is_signed_v<T>) {
        if (b == T(-1)) return Sub{}(T(0), a);
        const T quotient = static_cast<T>(a / b);
        return static_cast<T>(quotient - ((a % b != 0) && ((a < 0) != (b < 0))));
      } else {
        return static_cast<T>(a / b);
      }
    } else {
      return a / b;
    }
  }
};

/// Modulo 2^bits; a negative exponent gives the real result's integer part, which is 0 but for 1
/// and -1.
struct IntegerPow {
  template <class T>
  T operator()(T base, T exponent) const {
    if constexpr (std::is_signed_v<T>) {
      if (exponent < 0) {
        const bool odd = (exponent & 1) != 0;
        return base == 1 ? T(1) : base == T(-1) ? (odd ? T(-1) : T(1)) : T(0);
      }
    }
    T result = 1;
    for (auto left = static_cast<std::make_unsigned_t<T>>(exponent); left != 0;) {
      if ((left & 1U) != 0) result = Mul{}(result, base);
      base = Mul{}(base, base);
      left = static_cast<std::make_unsigned_t<T>>(left >> 1);
    }
    return result;
  }
};

struct Neg {
  template <class T>
  T operator()(T a) const {
    if constexpr (std::is_integral_v<T>)
      return Sub{}(T(0), a);
    else
      return -a;
  }
};
struct Abs {
  template <class T>
  T operator()(T a) const {
    if constexpr (std::is_integral_v<T>)
      return a < 0 ? Neg{}(a) : a;
    else
      return std::abs(a);
  }
};
struct Sign {
  template <class T>
  T operator()(T a) const {
    const T sign = static_cast<T>((a > 0) - (a < 0));
    return a == a ? sign : a;
  }
};

// NaN in either operand gives NaN; of equal ones the second, which decides the sign of zero.
struct Minimum {
  template <class T>
  T operator()(T a, T b) const {
    const T smaller = a < b ? a : b;  // an instruction of its own
    return a != a ? a : smaller;
  }
};
struct Maximum {
  template <class T>
  T operator()(T a, T b) const {
    const T larger = a > b ? a : b;
    return a != a ? a : larger;
  }
};

/// G{}(F{}(a, b), c) of floats that need no conversion.
template <class T, class F, class G>
void pair_loop(void* out, const Operand* operands, std::int64_t n) {
  for_chunks(n, [&](std::int64_t first, std::int64_t count) {
    T* __restrict to = static_cast<T*>(out) + first;
    const T* __restrict x = at<T>(operands[0], first);
    const T* __restrict y = at<T>(operands[1], first);
    const T* __restrict z = at<T>(operands[2], first);
    for (std::int64_t i = 0; i < count; ++i)
      to[i] = G{}(F{}(x[i], y[i]), z[i]);
  });
}

/// a / b, or (a - b) / c. By a divisor that is the same everywhere there is a faster way.
template <class T, bool kSubtracts>
void divide_loop(void* out, const Operand* operands, std::int64_t n) {
  using Real = InChunk<T>;
  const Operand& divisors = operands[kSubtracts ? 2 : 1];
  const Real y = divisors.uniform ? load(*at<T>(divisors, 0)) : Real(1);
  const Divisor<Real> divisor(y);
  if (!divisors.uniform || !divisor.is_usable()) {
    if constexpr (kSubtracts)
      return pair_loop<T, Sub, Div>(out, operands, n);
    else
      return loop2<T, T, Div>(out, operands, n);
  }
  for_chunks(n, [&](std::int64_t first, std::int64_t count) {
    const Chunk<T> a(operands[0], first, count);
    ResultChunk<T> result(out, first);
    Real* __restrict to = result.data();
    const Real* __restrict x = a.data();
    const auto numerator = [&](std::int64_t i) {
      if constexpr (kSubtracts)
        return x[i] - at<T>(operands[1], first)[i];
      else
        return x[i];
    };
    if (!divisor.divide(numerator, to, count)) {
      for (std::int64_t i = 0; i < count; ++i)
        to[i] = numerator(i) / y;
    }
    result.finish(count);
  });
}

/// minimum(maximum(a, b), c). Between numbers it takes half of the instructions.
template <class T>
void clip_loop(void* out, const Operand* operands, std::int64_t n) {
  const T low = *at<T>(operands[1], 0), high = *at<T>(operands[2], 0);
  if (!operands[1].uniform || !operands[2].uniform || low != low || high != high)
    return pair_loop<T, Maximum, Minimum>(out, operands, n);
  for_chunks(n, [&](std::int64_t first, std::int64_t count) {
    T* __restrict to = static_cast<T*>(out) + first;
    const T* __restrict x = at<T>(operands[0], first);
    for (std::int64_t i = 0; i < count; ++i) {
      const T larger = low >= x[i] ? low : x[i];
      to[i] = high <= larger ? high : larger;
    }
  });
}

template <class T>
CpuLoop* loop_of(Opcode opcode) {
  switch (opcode) {
    case Opcode::minimum:
      return loop2<T, T, Minimum>;
    case Opcode::maximum:
      return loop2<T, T, Maximum>;
    default:
      break;
  }
  if constexpr (!std::is_same_v<T, Bool>) {
    switch (opcode) {
      case Opcode::neg:
        return loop1<T, T, Neg>;
      case Opcode::abs:
        return loop1<T, T, Abs>;
      case Opcode::sign:
        return loop1<T, T, Sign>;
      case Opcode::add:
        return loop2<T, T, Add>;
      case Opcode::sub:
        return loop2<T, T, Sub>;
      case Opcode::mul:
        return loop2<T, T, Mul>;
      case Opcode::div:
        if constexpr (std::is_floating_point_v<InChunk<T>>) return divide_loop<T, false>;
        return loop2<T, T, Div>;
      case Opcode::pow:
        if constexpr (std::is_integral_v<T>) return loop2<T, T, IntegerPow>;
        break;
      default:
        break;
    }
  }
  return nullptr;
}

template <class T>
CpuLoop* pair_of(Opcode first, Opcode second) {
  if (first == Opcode::sub && second == Opcode::div) return divide_loop<T, true>;
  if (first == Opcode::maximum && second == Opcode::minimum) return clip_loop<T>;
  if (first == Opcode::mul && second == Opcode::add) return pair_loop<T, Mul, Add>;
  return nullptr;
}

}  // namespace

CpuLoop* loop_of_two(Opcode first, Opcode second, Dtype dtype) {
  return loop_for(Types<float, double>{}, dtype,
                  [&]<class T>(Type<T>) { return pair_of<T>(first, second); });
}

CpuLoop* arithmetic_loop(Opcode opcode, Dtype operand) {
  using Real = Types<Bool, std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t, std::int8_t,
                     std::int16_t, std::int32_t, std::int64_t, Half, BFloat16, float, double>;
  return loop_for(Real{}, operand, [&]<class T>(Type<T>) { return loop_of<T>(opcode); });
}

}  // namespace forebay::expr::FOREBAY_CPU_LEVEL
