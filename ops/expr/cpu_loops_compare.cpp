#include <forebay/ops/expr/cpu_loops.h>

// Comparisons, tests, logic and select.
namespace forebay::expr::FOREBAY_CPU_LEVEL {
namespace {

struct Less {
  template <class T>
  bool operator()(T a, T b) const {
    return a < b;
  }
};
struct LessEqual {
  template <class T>
  bool operator()(T a, T b) const {
    return a <= b;
  }
};
struct Equal {
  template <class T>
  bool operator()(T a, T b) const {
    return a == b;
  }
};
struct NotEqual {
  template <class T>
  bool operator()(T a, T b) const {
    return a != b;
  }
};
struct IsNan {
  template <class T>
  bool operator()(T a) const {
    return a != a;
  }
};
struct And {
  bool operator()(std::uint8_t a, std::uint8_t b) const { return (a & b) != 0; }
};
struct Or {
  bool operator()(std::uint8_t a, std::uint8_t b) const { return (a | b) != 0; }
};
struct Not {
  bool operator()(std::uint8_t a) const { return a == 0; }
};

template <class T>
void select_loop(void* out, const Operand* operands, std::int64_t n) {
  for_chunks(n, [&](std::int64_t first, std::int64_t count) {
    T* __restrict to = static_cast<T*>(out) + first;
    const std::uint8_t* __restrict condition = at<std::uint8_t>(operands[0], first);
    const T* __restrict yes = at<T>(operands[1], first);
    const T* __restrict no = at<T>(operands[2], first);
    for (std::int64_t i = 0; i < count; ++i) {
      const T x = yes[i], y = no[i];
      to[i] = condition[i] != 0 ? x : y;
    }
  });
}

template <class T>
CpuLoop* loop_of(Opcode opcode) {
  switch (opcode) {
    case Opcode::eq:
      return loop2<Bool, T, Equal>;
    case Opcode::ne:
      return loop2<Bool, T, NotEqual>;
    case Opcode::is_nan:
      if constexpr (is_complex_type<T> || is_half_type<T> || std::is_floating_point_v<T>)
        return loop1<Bool, T, IsNan>;
      break;
    case Opcode::select:
      return select_loop<T>;
    default:
      break;
  }
  if constexpr (!is_complex_type<T>) {
    if (opcode == Opcode::lt) return loop2<Bool, T, Less>;
    if (opcode == Opcode::le) return loop2<Bool, T, LessEqual>;
  }
  if constexpr (std::is_same_v<T, Bool>) {
    if (opcode == Opcode::logical_and) return loop2<Bool, Bool, And>;
    if (opcode == Opcode::logical_or) return loop2<Bool, Bool, Or>;
    if (opcode == Opcode::logical_not) return loop1<Bool, Bool, Not>;
  }
  return nullptr;
}

}  // namespace

CpuLoop* compare_loop(Opcode opcode, Dtype operand) {
  using Every = Types<Bool, std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t, std::int8_t,
                      std::int16_t, std::int32_t, std::int64_t, Half, BFloat16, float, double,
                      std::complex<float>, std::complex<double>>;
  return loop_for(Every{}, operand, [&]<class T>(Type<T>) { return loop_of<T>(opcode); });
}

}  // namespace forebay::expr::FOREBAY_CPU_LEVEL
