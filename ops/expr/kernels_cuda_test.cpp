// The generated kernels: their text, and that NVRTC takes it for every architecture. Needs no GPU.
#include "kit/kit.h"

#include <array>

#include <forebay/array/cuda/kernel.h>
#include <forebay/array/error.h>
#include <forebay/ops/expr/cuda_source.h>
#include <forebay/ops/expr/execute_devices.h>
#include <forebay/ops/expr/opcodes.h>

namespace forebay::expr {
namespace {

bool may_cast(Dtype from, Dtype to) {
  return !is_complex(from) || is_complex(to) || to == Dtype::boolean;
}

/// Compiles the kernel of `outputs` for every architecture, if the disk cache has it not yet.
void compiles(std::span<const Expr> outputs) {
  const Program program = compile(outputs);
  const CudaSource source = cuda_source(program, cuda_walk(program));
  const cuda::CompileOnly all({80, 90, 100, 120});
  try {
    cuda::load_kernel({kKernelName, source.text, {}}, Device::cuda());
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
  compiles(std::array{turned, row, scalar, dense});
}

TEST(RandomKernels, CompileForEveryArchitecture) {
  const auto word = [](std::uint64_t value) { return Expr::constant(value, Dtype::u64); };
  const Expr numbers = Expr::index({8, 16, 30});
  for (const Expr& place : {numbers, permute(Expr::index({16, 30, 8}), {2, 0, 1}),
                            slice(Expr::index({8, 16, 31}), 2, 30, 0, -1)}) {
    const Expr bits = philox(place, numbers + word(1), word(7));
    compiles(std::array{unary(Opcode::uniform, bits), unary(Opcode::normal, bits),
                        unary(Opcode::normal, cast(bits, Dtype::u64)),
                        unary(Opcode::uniform, cast(bits, Dtype::u64))});
  }
}

Expr number(double value) { return Expr::constant(value, Dtype::f32); }

TEST(KernelText, IsOneReadableFunctionAndAWayThroughMemory) {
  const Expr x = cast(Expr::leaf(0, Dtype::u8, {64, 784}), Dtype::f32);
  const Expr normalized = (x - number(0.13)) / number(0.31);
  const std::string text =
      cuda_source(compile(std::array{cast(minimum(normalized, number(3)), Dtype::f16)}));
  EXPECT_NE(text.find("template <bool Exact>\n"
                      "inline void element(f32 x0, f16& out0) {\n"
                      "  const f32 v1 = x0;\n"
                      "  const f32 v3 = v1 - 0.13f;\n"
                      "  const f32 v5 = small_quotient<Exact>(v3, 0.31f, 3.2258065f);\n"
                      "  const f32 v7 = min_nan(v5, 3.0f);\n"
                      "  const f16 v8 = saturate_cast<f16>(v7);\n"
                      "  out0 = v8;\n"
                      "}\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("items<8>(p, common, 0, p.packs);"), std::string::npos)
      << text;  // 16 bytes of the widest type
}

TEST(KernelText, TakesShortWaysOnlyWhereTheyGiveTheSameBits) {
  const Expr x = Expr::leaf(0, Dtype::f32, {8}), y = Expr::leaf(1, Dtype::f32, {8}),
             scalar = broadcast_to(Expr::leaf(2, Dtype::f32, {}), {8});
  const auto has = [](const Expr& expression, const char* part) {
    return cuda_source(compile(std::array{expression})).find(part) != std::string::npos;
  };
  EXPECT_TRUE(has(x / number(-0.25), "= v0 * -4.0f;"));
  EXPECT_TRUE(has(x / number(0), "= v0 / 0.0f;"));
  EXPECT_TRUE(has(x / number(-3), "= v0 / -3.0f;"));
  EXPECT_TRUE(has(x / number(1e30), "= v0 / 1e+30f;"));
  EXPECT_TRUE(has(x / y, "= v0 / v1;"));
  EXPECT_TRUE(has(x / scalar, "= quotient<Exact>(v0, v1, x1_inverse, doubt);"));
  EXPECT_TRUE(has(x / scalar, "x1_inverse = inverse_of(x1, doubt);"));
  EXPECT_TRUE(has(maximum(x, number(0)), "= maximum(v0, 0.0f);"));  // of -0 and 0, the second
  EXPECT_TRUE(has(maximum(number(1), x), "= max_nan(1.0f, v1);"));
  EXPECT_TRUE(has(maximum(x, y), "= maximum(v0, v1);"));
  const Expr bytes = Expr::leaf(0, Dtype::u8, {8}), integers = cast(bytes, Dtype::f32);
  EXPECT_TRUE(has(integers / number(3), "= small_quotient<Exact>(v1, 3.0f, 0.33333334f);"));
  EXPECT_TRUE(
      has((integers - number(0.1)) / scalar, "= small_quotient<Exact>(v3, v4, x1_inverse);"));
  EXPECT_TRUE(has((integers - scalar) / number(3), "doubt.see_shift(x1);"));
  EXPECT_TRUE(has((integers - number(1e-30)) / number(3), "= quotient<Exact>(v3, 3.0f"));
  EXPECT_TRUE(has(cast(bytes, Dtype::f32), "element(as_f32(x0, n), out0.at[n]);"));
  EXPECT_TRUE(has(select(cast(bytes, Dtype::boolean), cast(bytes, Dtype::f32), number(1)),
                  "element(x0.at[n], out0.at[n]);"));
}

TEST(KernelText, DependsOnTheStructureOnly) {
  const auto text = [](const Dims& shape) {
    const Expr x = permute(Expr::leaf(0, Dtype::u8, shape), {0, 2, 1});
    return cuda_source(compile(std::array{cast(x, Dtype::f32)}));
  };
  EXPECT_EQ(text({2, 13, 14}), text({5, 16, 17}));
  EXPECT_NE(text({2, 13, 14}), text({1, 16, 17}));  // an axis less
  EXPECT_NE(text({2, 13, 3}), text({2, 13, 4}));    // taken together by a thread
}

TEST(KernelText, ComputesHalvesInFloatAndRoundsEachResult) {
  const Expr x = Expr::leaf(0, Dtype::f16, {8});
  const std::string text = cuda_source(compile(std::array{unary(Opcode::exp, x * x + x)}));
  EXPECT_NE(text.find("const f16 v1 = f16(f32(v0) * f32(v0));\n"
                      "  const f16 v2 = f16(f32(v1) + f32(v0));\n"
                      "  const f16 v3 = f16(exp_of<Exact>(f32(v2), doubt));\n"),
            std::string::npos)
      << text;
}

TEST(KernelText, HasRoomForSomeArraysOnly) {
  Expr sum = Expr::leaf(0, Dtype::f32, {6, 7}, {7, 1});
  for (int i = 1; i < 300; ++i)
    sum = sum + Expr::leaf(i, Dtype::f32, {6, 7}, {8 + i, 1});
  EXPECT_ERROR(prepare_cuda(compile(std::array{sum}), kit::context(Device::cpu())), unsupported,
               "one kernel cannot read and write 301 arrays; write intermediate results out.");
}

// The kernels of the bench table's rows.
std::vector<std::pair<std::string, Expr>> benched() {
  const Expr x = Expr::leaf(0, Dtype::f32, {65536, 1024});
  Expr chain = x;
  for (Opcode opcode : {Opcode::abs, Opcode::sqrt, Opcode::exp, Opcode::log1p, Opcode::tanh})
    chain = unary(opcode, chain / number(1.1)) + number(0.3);
  const Expr image = Expr::leaf(0, Dtype::u8, {1024, 224, 224, 3});
  const auto table = [&](float value) {
    return broadcast_to(
        Expr::array(Array::from<float>({3}, std::vector<float>{value, value + 1, value + 2})),
        image.shape());
  };
  const Expr normalized = (cast(image, Dtype::f32) - table(100)) / table(50);
  const auto clip = [](const Expr& a) { return minimum(maximum(a, number(-2)), number(2)); };
  return {{"normclip", clip((x - number(0.1)) / number(2.5))},
          {"chain_12", clip(chain)},
          {"image", permute(cast(clip(normalized), Dtype::f16), {0, 3, 1, 2})},
          {"transpose", permute(Expr::leaf(0, Dtype::f32, {8192, 8192}), {1, 0})}};
}

TEST(KernelText, SpillsNothingInBenchedKernels) {
  for (const auto& [what, expression] : benched()) {
    const Program program = compile(std::array{expression});
    const std::string text = cuda_source(program);
    for (int architecture : {80, 90, 100, 120}) {
      const std::string report = cuda::compiler_report({kKernelName, text, {}}, architecture);
      EXPECT_NE(report.find("0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads"),
                std::string::npos)
          << what << " for sm_" << architecture << ":\n"
          << report;
    }
  }
}

}  // namespace
}  // namespace forebay::expr
