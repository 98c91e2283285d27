// The generated kernels: their text, and that NVRTC takes it for every architecture. Needs no GPU.
#include "kit/kit.h"

#include <array>

#include <forebay/array/cuda/kernel.h>
#include <forebay/array/error.h>
#include <forebay/ops/expr/cuda_source.h>
#include <forebay/ops/expr/execute.h>
#include <forebay/ops/expr/opcodes.h>

namespace forebay::expr {
namespace {

bool may_cast(Dtype from, Dtype to) {
  return !is_complex(from) || is_complex(to) || to == Dtype::boolean;
}

/// Compiles the kernel of `outputs` for every architecture, if the disk cache has it not yet.
void compiles(std::span<const Expr> outputs, const char* index = "i32") {
  const Program program = compile(outputs);
  const CudaSource source = cuda_source(program, loop_nest(program));
  std::vector<std::string> options;
  if (!source.flat) options.push_back(std::string("-DFOREBAY_INDEX=") + index);
  const cuda::CompileOnly all({80, 90, 100, 120});
  try {
    cuda::load_kernel({kKernelName, source.text, options}, Device::cuda());
    EXPECT_EQ(all.compiled(), 1);
  } catch (const Error& error) {
    FAIL() << error.what() << "\n" << source.text;
  }
}

/// One output for each opcode and cast that takes operands of `dtype`.
std::vector<Expr> everything_of(Dtype dtype, const Expr& a, const Expr& b) {
  std::vector<Expr> results;
  for (Opcode opcode : computing_opcodes()) {
    if (!info(opcode).supported.has(dtype)) continue;
    results.push_back(info(opcode).operands == 1 ? unary(opcode, a) : binary(opcode, a, b));
  }
  results.push_back(select(cast(a, Dtype::boolean), a, b));
  for (Dtype to : kAllDtypes) {
    if (may_cast(dtype, to)) results.push_back(cast(a, to));
    const bool whole = is_integer(dtype) || dtype == Dtype::boolean;
    if (whole && (is_integer(to) || to == Dtype::boolean))
      results.push_back(cast(a, to, CastMode::wrap));
  }
  for (const Number& value : {Number(1), Number(-1.5), Number(0.1), Number(UINT64_MAX),
                              Number(INT64_MIN), Number(NAN), Number(-INFINITY)}) {
    if (dtype == Dtype::boolean) break;
    results.push_back(select(binary(Opcode::eq, a, Expr::constant(value, dtype)), a, b));
  }
  return results;
}

class GeneratedKernels : public testing::TestWithParam<Dtype> {};
INSTANTIATE_TEST_SUITE_P(All, GeneratedKernels, testing::ValuesIn(kAllDtypes),
                         [](const auto& test) { return std::string(name_of(test.param)); });

TEST_P(GeneratedKernels, CompileForEveryPrimitive) {
  // In the form that takes one element at a time.
  const Expr a = permute(Expr::leaf(0, GetParam(), {6, 32, 32}), {2, 0, 1}),
             b = Expr::leaf(1, GetParam(), {32, 6, 32});
  compiles(everything_of(GetParam(), a, b));
}

TEST_P(GeneratedKernels, CompileForEveryWayThroughMemory) {
  const Dtype dtype = GetParam();
  const auto spread = [](const Expr& x) { return broadcast_to(x, {32, 6, 32}); };
  const Expr dense = Expr::leaf(0, dtype, {32, 6, 32}), scalar = spread(Expr::leaf(2, dtype, {}));
  compiles(std::array{dense, scalar, cast(dense, Dtype::boolean)});  // the boolean may be narrower
  const Expr turned = permute(Expr::leaf(3, dtype, {6, 32, 32}), {2, 0, 1}),
             row = spread(Expr::leaf(1, dtype, {32}));
  compiles(std::array{turned, row, scalar, dense}, "i64");
}

TEST(KernelText, IsOneReadableFunctionAndTwoWaysThroughMemory) {
  const auto number = [](double value) { return Expr::constant(value, Dtype::f32); };
  const Expr x = cast(Expr::leaf(0, Dtype::u8, {64, 784}), Dtype::f32);
  const Expr normalized = (x - number(0.13)) / number(0.31);
  const std::string text =
      cuda_source(compile(std::array{cast(minimum(normalized, number(3)), Dtype::f16)}));
  EXPECT_NE(text.find("inline void element(u8 x0, f16& out0) {\n"
                      "  const u8 v0 = x0;\n"
                      "  const f32 v1 = saturate_cast<f32>(v0);\n"
                      "  const f32 v3 = v1 - 0.13f;\n"
                      "  const f32 v5 = v3 / 0.31f;\n"
                      "  const f32 v7 = minimum(v5, 3.0f);\n"
                      "  const f16 v8 = saturate_cast<f16>(v7);\n"
                      "  out0 = v8;\n"
                      "}\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("constexpr int N = 8;"), std::string::npos)
      << text;  // 16 bytes of the widest type
}

TEST(KernelText, DependsOnTheStructureOnly) {
  const auto text = [](const Dims& shape) {
    const Expr x = permute(Expr::leaf(0, Dtype::u8, shape), {0, 2, 1});
    return cuda_source(compile(std::array{cast(x, Dtype::f32)}));
  };
  EXPECT_EQ(text({2, 3, 4}), text({5, 6, 7}));
  EXPECT_NE(text({2, 3, 4}), text({1, 6, 7}));  // an axis less
}

TEST(KernelText, ComputesHalvesInFloatAndRoundsEachResult) {
  const Expr x = Expr::leaf(0, Dtype::f16, {8});
  const std::string text = cuda_source(compile(std::array{unary(Opcode::exp, x * x + x)}));
  EXPECT_NE(text.find("const f16 v1 = f16(f32(v0) * f32(v0));\n"
                      "  const f16 v2 = f16(f32(v1) + f32(v0));\n"
                      "  const f16 v3 = f16(expf(f32(v2)));\n"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace forebay::expr
