#include <forebay/ops/expr/cuda_source.h>

#include <algorithm>

#include <forebay/array/require.h>
#include <forebay/ops/expr/cuda_text.h>
#include <forebay/ops/expr/device_code.h>
#include <forebay/ops/expr/execute.h>

namespace forebay::expr {
namespace {

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
    result_.text = kPackText;
    if (result_.flat)
      line("\nconstexpr int N = {};  // elements that a thread moves at once", result_.pack);
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

  bool is_dense(std::size_t leaf) const { return nest_.is_dense(nest_.leaves[leaf]); }
  bool is_scalar(std::size_t leaf) const {
    return !is_dense(leaf) && LoopNest::is_scalar(nest_.leaves[leaf]);
  }
  Dtype output_dtype(std::size_t k) const { return at(program_.outputs[k]).dtype; }
  std::size_t leaf_count() const { return program_.leaves.size(); }
  std::size_t output_count() const { return program_.outputs.size(); }

  void parameters() {
    line("\nstruct Parameters {{");
    line("  i64 count;    // elements");
    line("  i64 aligned;  // whether every address allows whole packs");
    if (!result_.flat) line("  i64 extent[{}];", nest_.shape.rank);
    for (std::size_t i = 0; i < leaf_count(); ++i) {
      line("  const {}* x{};", cuda_memory_type(program_.leaves[i].dtype), i);
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
      list += fmt::format("{} x{}, ", cuda_memory_type(program_.leaves[i].dtype), i);
    }
    for (std::size_t k = 0; k < output_count(); ++k) {
      list += fmt::format("{}{}& out{}", k == 0 ? "" : ", ", name_of(output_dtype(k)), k);
    }
    line("\ninline void element({}) {{", list);
    result_.text += cuda_statements(program_, "  ");
    for (std::size_t k = 0; k < output_count(); ++k)
      line("  out{} = {};", k, cuda_value(program_, program_.outputs[k]));
    line("}}");
  }

  void begin_kernel() {
    line(
        "\nextern \"C\" __global__ void __launch_bounds__({}) {}(const __grid_constant__ "
        "Parameters p) {{",
        kKernelThreads, kKernelName);
    for (std::size_t i = 0; i < leaf_count(); ++i) {
      if (is_scalar(i))
        line("  const {} x{} = *p.x{};", cuda_memory_type(program_.leaves[i].dtype), i, i);
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
      if (is_dense(i)) line("      const auto x{}_pack = load_pack<N>(p.x{} + i * N, true);", i, i);
    }
    for (std::size_t k = 0; k < output_count(); ++k)
      line("      Pack<{}, N> out{}_pack;", name_of(output_dtype(k)), k);
    line("#pragma unroll");
    line("      for (int k = 0; k < N; ++k) {{");
    line("        {}",
         element_call([](std::size_t i) { return fmt::format("x{}_pack.at[k]", i); },
                      [](std::size_t k) { return fmt::format("out{}_pack.at[k]", k); }));
    line("      }}");
    for (std::size_t k = 0; k < output_count(); ++k)
      line("      {}store_pack(p.out{} + i * N, out{}_pack, true);", guard(k), k, k);
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
