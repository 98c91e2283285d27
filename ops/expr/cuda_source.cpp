#include <forebay/ops/expr/cuda_source.h>

#include <algorithm>

#include <forebay/array/require.h>
#include <forebay/ops/expr/cuda_text.h>
#include <forebay/ops/expr/execute.h>
#include <forebay/ops/expr/opcodes.h>

namespace forebay::expr {
namespace {

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

class Generator {
 public:
  Generator(const Program& program, const LoopNest& nest) : program_(program), nest_(nest) {
    result_.flat = nest.shape.rank == 1;
    for (const Dims& strides : nest.leaves)
      result_.flat &= nest.is_dense(strides) || LoopNest::is_scalar(strides);
    for (const Dims& strides : nest.outputs)
      result_.flat &= nest.is_dense(strides);
    std::size_t widest = 1;
    for (const Program::Leaf& leaf : program.leaves)
      widest = std::max(widest, size_of(leaf.dtype));
    for (int output : program.outputs)
      widest = std::max(widest, size_of(at(output).dtype));
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
  const Program::Instruction& at(int number) const {
    return program_.code[static_cast<std::size_t>(number)];
  }
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    result_.text += fmt::format(format, std::forward<Args>(args)...);
    result_.text += '\n';
  }

  /// In memory a bool is a byte, of which any but 0 is true.
  static std::string_view memory_type(Dtype dtype) {
    return dtype == Dtype::boolean ? "u8" : name_of(dtype);
  }
  bool is_dense(std::size_t leaf) const { return nest_.is_dense(nest_.leaves[leaf]); }
  bool is_scalar(std::size_t leaf) const {
    return !is_dense(leaf) && LoopNest::is_scalar(nest_.leaves[leaf]);
  }
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
        case Opcode::pow:
          integers |= forebay::is_integer(at(instruction.args[0]).dtype);
          break;
        case Opcode::sign:
          sign = true;
          break;
        default:
          break;
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
    for (std::size_t k = 0; k < output_count(); ++k)
      line("  out{} = {};", k, value(program_.outputs[k]));
    line("}}");
  }

  std::string value(int number) const {
    const Program::Instruction& instruction = at(number);
    return instruction.opcode == Opcode::constant
               ? cuda_literal(instruction.value, instruction.dtype)
               : fmt::format("v{}", number);
  }
  std::string expression(const Program::Instruction& instruction) const {
    if (instruction.opcode == Opcode::leaf) {
      return fmt::format("x{}{}", instruction.leaf,
                         instruction.dtype == Dtype::boolean ? " != 0" : "");
    }
    const int operands = info(instruction.opcode).operands;
    std::string texts[3];
    for (int k = 0; k < operands; ++k)
      texts[k] = value(instruction.args[k]);
    const Dtype operand = at(instruction.args[operands - 1]).dtype;
    return cuda_instruction(instruction.opcode, operand, instruction.dtype, texts);
  }

  void begin_kernel() {
    line(
        "\nextern \"C\" __global__ void __launch_bounds__({}) {}(const __grid_constant__ "
        "Parameters p) {{",
        kKernelThreads, kKernelName);
    for (std::size_t i = 0; i < leaf_count(); ++i) {
      if (is_scalar(i))
        line("  const {} x{} = *p.x{};", memory_type(program_.leaves[i].dtype), i, i);
    }
  }

  /// The call of `element` with each leaf and output written by these.
  template <class LeafText, class OutputText>
  std::string element_call(const LeafText& leaf, const OutputText& output) const {
    std::string list;
    for (std::size_t i = 0; i < leaf_count(); ++i) {
      list += fmt::format("{}{}", list.empty() ? "" : ", ",
                          is_scalar(i) ? fmt::format("x{}", i) : leaf(i));
    }
    for (std::size_t k = 0; k < output_count(); ++k)
      list += fmt::format("{}{}", list.empty() ? "" : ", ", output(k));
    return fmt::format("element({});", list);
  }

  /// Of several outputs, those that nobody reads have no memory.
  std::string guard(std::size_t k) const {
    return output_count() > 1 ? fmt::format("if (p.out{} != nullptr) ", k) : std::string();
  }

  /// Computes and stores element `i`, whose places these write.
  template <class LeafText, class OutputText>
  void one_element(const LeafText& leaf, const OutputText& output) {
    for (std::size_t k = 0; k < output_count(); ++k)
      line("    {} out{};", name_of(output_dtype(k)), k);
    line("    {}", element_call(leaf, [](std::size_t k) { return fmt::format("out{}", k); }));
    for (std::size_t k = 0; k < output_count(); ++k)
      line("    {}{} = out{};", guard(k), output(k), k);
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
    for (std::size_t k = 0; k < output_count(); ++k)
      line("      Pack<{}> out{}_pack;", name_of(output_dtype(k)), k);
    line("#pragma unroll");
    line("      for (int k = 0; k < N; ++k) {{");
    line("        {}",
         element_call([](std::size_t i) { return fmt::format("x{}_pack.at[k]", i); },
                      [](std::size_t k) { return fmt::format("out{}_pack.at[k]", k); }));
    line("      }}");
    for (std::size_t k = 0; k < output_count(); ++k)
      line("      {}store(p.out{}, i, out{}_pack);", guard(k), k, k);
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
      text +=
          fmt::format("{}i{} * Index(p.{}_stride[{}])", axis == 0 ? "" : " + ", axis, array, axis);
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
        [&](std::size_t i) {
          return is_dense(i) ? fmt::format("p.x{}[i]", i) : place(fmt::format("x{}", i));
        },
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

CudaSource cuda_source(const Program& program, const LoopNest& nest) {
  return Generator(program, nest)();
}

std::string cuda_source(const Program& program) {
  return cuda_source(program, loop_nest(program)).text;
}

}  // namespace forebay::expr
