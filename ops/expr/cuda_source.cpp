#include <forebay/ops/expr/cuda_source.h>

#include <algorithm>
#include <cmath>

#include <forebay/array/require.h>
#include <forebay/ops/expr/execute.h>
#include <forebay/ops/expr/opcodes.h>

namespace forebay::expr {
namespace {

/// Put before kernels with integer arithmetic.
constexpr const char* kIntegerHelpers = R"(
// Integers compute modulo 2^bits, in an unsigned type that is not promoted to a signed one.
template <bool Wide> struct WordOf { using type = u32; };
template <> struct WordOf<true> { using type = u64; };
template <class T> using Word = typename WordOf<(sizeof(T) > 4)>::type;

template <class T> T add(T x, T y) { return T(Word<T>(x) + Word<T>(y)); }
template <class T> T sub(T x, T y) { return T(Word<T>(x) - Word<T>(y)); }
template <class T> T mul(T x, T y) { return T(Word<T>(x) * Word<T>(y)); }
template <class T> T absolute(T x) { return x < T(0) ? sub(T(0), x) : x; }

// The floor of the quotient; 0 for a divisor of 0.
template <class T> T floor_divide(T x, T y) {
  if (y == T(0)) return 0;
  if constexpr (is_signed<T>) {
    if (y == T(-1)) return sub(T(0), x);
    return T(x / y - (x % y != 0 && (x < 0) != (y < 0)));
  }
  return T(x / y);
}

// The integer part of the power, modulo 2^bits.
template <class T> T integer_pow(T base, T exponent) {
  if constexpr (is_signed<T>) {
    if (exponent < 0) return base == T(1) ? T(1) : base == T(-1) ? (exponent & 1 ? T(-1) : T(1)) : T(0);
  }
  T result = 1;
  for (u64 left = u64(exponent); left != 0; left >>= 1) {
    if (left & 1) result = mul(result, base);
    base = mul(base, base);
  }
  return result;
}
)";

constexpr const char* kSignHelper = R"(
template <class T> T sign(T x) { return x != x ? x : T((x > T(0)) - (x < T(0))); }
)";

/// Put before flat kernels.
constexpr const char* kPacks = R"(
// N neighbours in memory, moved by one access of up to 16 bytes.
template <int Bytes> struct AccessOf;
template <> struct AccessOf<1> { using type = u8; };
template <> struct AccessOf<2> { using type = u16; };
template <> struct AccessOf<4> { using type = u32; };
template <> struct AccessOf<8> { using type = uint2; };
template <> struct AccessOf<16> { using type = uint4; };
template <class T> struct Pack {
  T at[N];
  using Access = typename AccessOf<sizeof(T) * N>::type;
};
template <class T> Pack<T> load(const T* from, i64 pack) {
  const auto access = reinterpret_cast<const typename Pack<T>::Access*>(from)[pack];
  Pack<T> result;
  memcpy(&result, &access, sizeof(result));
  return result;
}
template <class T> void store(T* to, i64 pack, const Pack<T>& values) {
  typename Pack<T>::Access access;
  memcpy(&access, &values, sizeof(access));
  reinterpret_cast<typename Pack<T>::Access*>(to)[pack] = access;
}
)";

std::string float_literal(double value, Dtype dtype) {
  const bool wide = dtype == Dtype::f64;
  if (std::isnan(value)) return wide ? "__longlong_as_double(0x7ff8000000000000)" : "__uint_as_float(0x7fc00000)";
  if (std::isinf(value)) {
    const char* const infinity = wide ? "__longlong_as_double(0x7ff0000000000000)" : "__uint_as_float(0x7f800000)";
    return fmt::format("{}{}", value < 0 ? "-" : "", infinity);
  }
  std::string text = wide ? fmt::format("{}", value) : fmt::format("{}", static_cast<float>(value));
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return wide ? text : text + "f";
}

/// `value`, which an element of `dtype` holds exactly, as an expression of that type.
std::string literal(const Number& value, Dtype dtype) {
  const std::string_view type = name_of(dtype);
  if (dtype == Dtype::boolean) return value.f64() != 0 ? "true" : "false";
  if (is_complex(dtype)) {
    const Dtype real = real_of(dtype);
    return fmt::format("{}{{{}, {}}}", type, float_literal(value.f64(), real), float_literal(0, real));
  }
  if (dtype == Dtype::f16 || dtype == Dtype::bf16) {
    return fmt::format("{}({})", type, float_literal(value.f64(), Dtype::f32));
  }
  if (is_float(dtype)) return float_literal(value.f64(), dtype);
  if (value.kind() == Number::Kind::u64) return fmt::format("{}ull", value.u64());
  if (value.i64() == INT64_MIN) return "(-9223372036854775807ll - 1)";
  return fmt::format("{}({}{})", type, value.i64(), size_of(dtype) == 8 ? "ll" : "");
}

/// How an instruction is written in CUDA C++ with operands `a`, `b`, `c`, all of dtype `operand` (c and b for select).
class Writer {
 public:
  Writer(Dtype operand, Dtype result) : operand_(operand), result_(result) {}

  std::string write(Opcode opcode, const std::string& a, const std::string& b, const std::string& c) const {
    switch (opcode) {
      case Opcode::cast_saturate: return fmt::format("saturate_cast<{}>({})", name_of(result_), a);
      case Opcode::cast_wrap: return fmt::format("wrap_cast<{}>({})", name_of(result_), a);
      case Opcode::neg: return is_integer(operand_) ? fmt::format("sub({}(0), {})", name_of(operand_), a) : rounded(fmt::format("-{}", wide(a)));
      case Opcode::abs:
        if (is_complex(operand_)) return call("abs", a);
        return is_integer(operand_) ? call("absolute", a) : function("fabs", a);
      case Opcode::sqrt:
      case Opcode::exp:
      case Opcode::expm1:
      case Opcode::log:
      case Opcode::log1p:
      case Opcode::log2:
      case Opcode::log10:
      case Opcode::sin:
      case Opcode::cos:
      case Opcode::tanh:
      case Opcode::floor:
      case Opcode::ceil: return function(info(opcode).name, a);
      case Opcode::round_even: return function("rint", a);
      case Opcode::sign: return rounded(call("sign", wide(a)));
      case Opcode::real: return fmt::format("{}.re", a);
      case Opcode::imag: return fmt::format("{}.im", a);
      case Opcode::norm: return call("norm", a);
      case Opcode::conj: return call("conj", a);
      case Opcode::add: return arithmetic("add", "+", a, b);
      case Opcode::sub: return arithmetic("sub", "-", a, b);
      case Opcode::mul: return arithmetic("mul", "*", a, b);
      case Opcode::div: return arithmetic("floor_divide", "/", a, b);
      case Opcode::pow:
        if (is_integer(operand_)) return call("integer_pow", a, b);
        if (operand_ == Dtype::f64) return call("pow", a, b);
        // powf is off by up to 4 ulp.
        return rounded(fmt::format("f32(pow(f64({}), f64({})))", wide(a), wide(b)));
      case Opcode::minimum: return call("minimum", a, b);
      case Opcode::maximum: return call("maximum", a, b);
      case Opcode::lt: return infix("<", wide(a), wide(b));
      case Opcode::le: return infix("<=", wide(a), wide(b));
      case Opcode::eq: return infix("==", wide(a), wide(b));
      case Opcode::ne: return infix("!=", wide(a), wide(b));
      case Opcode::is_nan: return infix("!=", wide(a), wide(a));
      case Opcode::logical_and: return infix("&&", a, b);
      case Opcode::logical_or: return infix("||", a, b);
      case Opcode::logical_not: return fmt::format("!{}", a);
      case Opcode::select: return fmt::format("{} ? {} : {}", a, b, c);
      case Opcode::leaf:
      case Opcode::constant: break;
    }
    return {};
  }

 private:
  bool is_half() const { return operand_ == Dtype::f16 || operand_ == Dtype::bf16; }
  /// f16 and bf16 compute in f32 and are rounded back after each operation.
  std::string wide(const std::string& a) const { return is_half() ? fmt::format("f32({})", a) : a; }
  std::string rounded(std::string text) const {
    return is_half() ? fmt::format("{}({})", name_of(operand_), text) : std::move(text);
  }
  static std::string call(std::string_view name, const std::string& a) { return fmt::format("{}({})", name, a); }
  static std::string call(std::string_view name, const std::string& a, const std::string& b) {
    return fmt::format("{}({}, {})", name, a, b);
  }
  static std::string infix(std::string_view sign, const std::string& a, const std::string& b) {
    return fmt::format("{} {} {}", a, sign, b);
  }
  /// A function of C's library, in its variant for f32 or f64.
  std::string function(std::string_view name, const std::string& a) const {
    return rounded(fmt::format("{}{}({})", name, operand_ == Dtype::f64 ? "" : "f", wide(a)));
  }
  std::string arithmetic(std::string_view name, std::string_view sign, const std::string& a, const std::string& b) const {
    return is_integer(operand_) ? call(name, a, b) : rounded(infix(sign, wide(a), wide(b)));
  }

  Dtype operand_;
  Dtype result_;
};

class Generator {
 public:
  Generator(const Program& program, const LoopNest& nest) : program_(program), nest_(nest) {
    result_.flat = nest.shape.rank == 1;
    for (const Dims& strides : nest.leaves) result_.flat &= nest.is_dense(strides) || LoopNest::is_scalar(strides);
    for (const Dims& strides : nest.outputs) result_.flat &= nest.is_dense(strides);
    std::size_t widest = 1;
    for (const Program::Leaf& leaf : program.leaves) widest = std::max(widest, size_of(leaf.dtype));
    for (int output : program.outputs) widest = std::max(widest, size_of(at(output).dtype));
    if (result_.flat) result_.pack = static_cast<int>(16 / widest);
  }

  CudaSource operator()() && {
    helpers();
    parameters();
    element();
    if (result_.flat) {
      flat_kernel();
    } else {
      strided_kernel();
    }
    return std::move(result_);
  }

 private:
  const Program::Instruction& at(int number) const { return program_.code[static_cast<std::size_t>(number)]; }
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    result_.text += fmt::format(format, std::forward<Args>(args)...);
    result_.text += '\n';
  }

  /// In memory a bool is a byte, of which any but 0 is true.
  static std::string_view memory_type(Dtype dtype) { return dtype == Dtype::boolean ? "u8" : name_of(dtype); }
  bool is_dense(std::size_t leaf) const { return nest_.is_dense(nest_.leaves[leaf]); }
  bool is_scalar(std::size_t leaf) const { return !is_dense(leaf) && LoopNest::is_scalar(nest_.leaves[leaf]); }
  Dtype output_dtype(std::size_t k) const { return at(program_.outputs[k]).dtype; }
  std::size_t leaf_count() const { return program_.leaves.size(); }
  std::size_t output_count() const { return program_.outputs.size(); }

  void helpers() {
    bool integers = false, sign = false;
    for (const Program::Instruction& instruction : program_.code) {
      switch (instruction.opcode) {
        case Opcode::neg:
        case Opcode::abs:
        case Opcode::add:
        case Opcode::sub:
        case Opcode::mul:
        case Opcode::div:
        case Opcode::pow: integers |= forebay::is_integer(at(instruction.args[0]).dtype); break;
        case Opcode::sign: sign = true; break;
        default: break;
      }
    }
    if (integers) result_.text += kIntegerHelpers;
    if (sign) result_.text += kSignHelper;
    if (result_.flat) {
      line("\nconstexpr int N = {};  // elements that a thread moves at once", result_.pack);
      result_.text += kPacks;
    }
  }

  void parameters() {
    line("\nstruct Parameters {{");
    line("  i64 count;    // elements");
    line("  i64 aligned;  // whether every address allows whole packs");
    if (!result_.flat) line("  i64 extent[{}];", nest_.shape.rank);
    for (std::size_t i = 0; i < leaf_count(); ++i) {
      line("  const {}* x{};", memory_type(program_.leaves[i].dtype), i);
      if (is_strided(i)) line("  i64 x{}_stride[{}];", i, nest_.shape.rank);
    }
    for (std::size_t k = 0; k < output_count(); ++k) {
      line("  {}* out{};", name_of(output_dtype(k)), k);
      if (!nest_.is_dense(nest_.outputs[k])) line("  i64 out{}_stride[{}];", k, nest_.shape.rank);
    }
    line("}};");
  }
  bool is_strided(std::size_t leaf) const { return !is_dense(leaf) && !is_scalar(leaf); }

  /// The program for one element, as a function.
  void element() {
    std::string list;
    for (std::size_t i = 0; i < leaf_count(); ++i) {
      list += fmt::format("{} x{}, ", memory_type(program_.leaves[i].dtype), i);
    }
    for (std::size_t k = 0; k < output_count(); ++k) {
      list += fmt::format("{}{}& out{}", k == 0 ? "" : ", ", name_of(output_dtype(k)), k);
    }
    line("\ninline void element({}) {{", list);
    for (std::size_t i = 0; i < program_.code.size(); ++i) {
      const Program::Instruction& instruction = program_.code[i];
      if (instruction.opcode == Opcode::constant) continue;
      line("  const {} v{} = {};", name_of(instruction.dtype), i, expression(instruction));
    }
    for (std::size_t k = 0; k < output_count(); ++k) line("  out{} = {};", k, value(program_.outputs[k]));
    line("}}");
  }

  std::string value(int number) const {
    const Program::Instruction& instruction = at(number);
    return instruction.opcode == Opcode::constant ? literal(instruction.value, instruction.dtype)
                                                  : fmt::format("v{}", number);
  }
  std::string expression(const Program::Instruction& instruction) const {
    if (instruction.opcode == Opcode::leaf) {
      return fmt::format("x{}{}", instruction.leaf, instruction.dtype == Dtype::boolean ? " != 0" : "");
    }
    const int operands = info(instruction.opcode).operands;
    std::string texts[3];
    for (int k = 0; k < operands; ++k) texts[k] = value(instruction.args[k]);
    return Writer(at(instruction.args[operands - 1]).dtype, instruction.dtype)
        .write(instruction.opcode, texts[0], texts[1], texts[2]);
  }

  void begin_kernel() {
    line("\nextern \"C\" __global__ void __launch_bounds__({}) {}(const __grid_constant__ Parameters p) {{",
         kKernelThreads, kKernelName);
    for (std::size_t i = 0; i < leaf_count(); ++i) {
      if (is_scalar(i)) line("  const {} x{} = *p.x{};", memory_type(program_.leaves[i].dtype), i, i);
    }
  }

  /// The call of `element` with each leaf and output written by these.
  template <class LeafText, class OutputText>
  std::string element_call(const LeafText& leaf, const OutputText& output) const {
    std::string list;
    for (std::size_t i = 0; i < leaf_count(); ++i) {
      list += fmt::format("{}{}", list.empty() ? "" : ", ", is_scalar(i) ? fmt::format("x{}", i) : leaf(i));
    }
    for (std::size_t k = 0; k < output_count(); ++k) list += fmt::format("{}{}", list.empty() ? "" : ", ", output(k));
    return fmt::format("element({});", list);
  }

  /// Of several outputs, those that nobody reads have no memory.
  std::string guard(std::size_t k) const {
    return output_count() > 1 ? fmt::format("if (p.out{} != nullptr) ", k) : std::string();
  }

  /// Computes and stores element `i`, whose places these write.
  template <class LeafText, class OutputText>
  void one_element(const LeafText& leaf, const OutputText& output) {
    for (std::size_t k = 0; k < output_count(); ++k) line("    {} out{};", name_of(output_dtype(k)), k);
    line("    {}", element_call(leaf, [](std::size_t k) { return fmt::format("out{}", k); }));
    for (std::size_t k = 0; k < output_count(); ++k) line("    {}{} = out{};", guard(k), output(k), k);
  }

  void flat_kernel() {
    begin_kernel();
    line("  i64 done = 0;");
    line("  if (p.aligned) {{");
    line("    const i64 packs = p.count / N;");
    line("    for (i64 i = grid_thread(); i < packs; i += grid_threads()) {{");
    for (std::size_t i = 0; i < leaf_count(); ++i) {
      if (is_dense(i)) line("      const auto x{}_pack = load(p.x{}, i);", i, i);
    }
    for (std::size_t k = 0; k < output_count(); ++k) line("      Pack<{}> out{}_pack;", name_of(output_dtype(k)), k);
    line("#pragma unroll");
    line("      for (int k = 0; k < N; ++k) {{");
    line("        {}", element_call([](std::size_t i) { return fmt::format("x{}_pack.at[k]", i); },
                                    [](std::size_t k) { return fmt::format("out{}_pack.at[k]", k); }));
    line("      }}");
    for (std::size_t k = 0; k < output_count(); ++k) line("      {}store(p.out{}, i, out{}_pack);", guard(k), k, k);
    line("    }}");
    line("    done = packs * N;");
    line("  }}");
    line("  for (i64 i = done + grid_thread(); i < p.count; i += grid_threads()) {{");
    one_element([](std::size_t i) { return fmt::format("p.x{}[i]", i); },
                [](std::size_t k) { return fmt::format("p.out{}[i]", k); });
    line("  }}");
    line("}}");
  }

  /// Where element (i0, i1, ..) of a strided array lies.
  std::string place(std::string_view array) const {
    std::string text;
    for (int axis = 0; axis < nest_.shape.rank; ++axis) {
      text += fmt::format("{}i{} * Index(p.{}_stride[{}])", axis == 0 ? "" : " + ", axis, array, axis);
    }
    return fmt::format("p.{}[{}]", array, text);
  }

  void strided_kernel() {
    line("\nusing Index = FOREBAY_INDEX;  // i32 where all offsets fit, else i64");
    begin_kernel();
    line("  for (i64 i = grid_thread(); i < p.count; i += grid_threads()) {{");
    line("    Index rest = Index(i);");
    for (int axis = nest_.shape.rank - 1; axis > 0; --axis) {
      line("    const Index i{} = rest % Index(p.extent[{}]);", axis, axis);
      line("    rest /= Index(p.extent[{}]);", axis);
    }
    line("    const Index i0 = rest;");
    one_element(
        [&](std::size_t i) { return is_dense(i) ? fmt::format("p.x{}[i]", i) : place(fmt::format("x{}", i)); },
        [&](std::size_t k) {
          const bool dense = nest_.is_dense(nest_.outputs[k]);
          return dense ? fmt::format("p.out{}[i]", k) : place(fmt::format("out{}", k));
        });
    line("  }}");
    line("}}");
  }

  const Program& program_;
  const LoopNest& nest_;
  CudaSource result_;
};

}  // namespace

CudaSource cuda_source(const Program& program, const LoopNest& nest) { return Generator(program, nest)(); }

std::string cuda_source(const Program& program) { return cuda_source(program, loop_nest(program)).text; }

}  // namespace forebay::expr
