
#include <forebay/array/cuda/check.h>
#include <forebay/array/cuda/device.h>
#include <forebay/array/cuda/kernel.h>

#include "kit/kit.h"

namespace forebay::cuda {
namespace {

const KernelSource kScale{.name = "scale",
                          .text = R"(extern "C" __global__ void scale(f32* x, i64 n) {
  for (i64 i = grid_thread(); i < n; i += grid_threads()) x[i] *= FACTOR;
}
)",
                          .options = {"-DFACTOR=2.5f"}};

class CompileTest : public testing::TestWithParam<int> {};

TEST_P(CompileTest, NeedsNoDevice) {
  const std::string code = compile_kernel(kScale, GetParam());
  EXPECT_EQ(code.substr(0, 4),
            "\x7f"
            "ELF");
}
INSTANTIATE_TEST_SUITE_P(Architectures, CompileTest, testing::Values(80, 90, 100, 120));

TEST(CompileTest, AGenerationNewerThanNvrtcGetsPtx) {
  EXPECT_NE(compile_kernel(kScale, 990).find(".entry scale"), std::string::npos);
}

TEST(CompileTest, TakesTheNewestKnownOfTheDevicesGeneration) {
  EXPECT_EQ(compile_kernel(kScale, 85), compile_kernel(kScale, 80));
}

TEST(CompileTest, SaysWhereTheKernelIsWrong) {
  const KernelSource broken{
      .name = "broken",
      .text = "extern \"C\" __global__ void broken(f32* x) {\n  x[0] = y;\n}\n",
      .options = {}};
  EXPECT_ERROR(compile_kernel(broken, 90), device,
               "kernel `broken` does not compile for sm_90 (NVRTC_ERROR_COMPILATION):\n"
               "broken.cu(2): error: identifier \"y\" is undefined\n"
               "    x[0] = y;\n"
               "           ^\n\n"
               "1 error detected in the compilation of \"broken.cu\".");
}

TEST(CompileTest, SaysWhichOptionIsWrong) {
  KernelSource source = kScale;
  source.options.push_back("--no-such-option");
  EXPECT_ERROR(compile_kernel(source, 90), device,
               "kernel `scale` does not compile for sm_90 (NVRTC_ERROR_INVALID_OPTION):\n"
               "nvrtc: error: unrecognized option --no-such-option found");
}

TEST(CompileTest, ReportsWhatTheKernelNeeds) {
  const std::string report = compiler_report(kScale, 90);
  EXPECT_NE(report.find("0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads"),
            std::string::npos)
      << report;
}

TEST(CompileTest, MultipliesAndAddsAreNotContracted) {
  const KernelSource source{
      .name = "sum",
      .text = "extern \"C\" __global__ void sum(f32* x) { x[0] = x[1] * x[2] + x[3]; }",
      .options = {}};
  const std::string ptx = compile_kernel(source, 990);
  EXPECT_NE(ptx.find("mul.rn.f32"), std::string::npos) << ptx;
  EXPECT_EQ(ptx.find("fma"), std::string::npos) << ptx;
}

TEST(CompileOnlyTest, CompilesAndCountsButDoesNotLaunch) {
  KernelSource other = kScale;
  other.options = {"-DFACTOR=3.0f"};
  std::shared_ptr<const Kernel> kernel;
  {
    const CompileOnly only({80, 120});
    kernel = load_kernel(kScale, Device::cuda());
    load_kernel(kScale, Device::cuda());
    EXPECT_EQ(only.compiled(), 1);
    load_kernel(other, Device::cuda(7));
    EXPECT_EQ(only.compiled(), 2);
    EXPECT_EQ(limits(Device::cuda()).architecture, 90);
    EXPECT_GT(kernel->resident_blocks(256, 0), 0);
    {
      const CompileOnly inner({80});
      EXPECT_EQ(inner.compiled(), 0);
    }
    load_kernel(other, Device::cuda());
    EXPECT_EQ(only.compiled(), 2);
  }
  const Stream stream = Stream::create(Device::cpu(), 1);
  EXPECT_ERROR(kernel->launch(stream, {1}, {32}, 0, {}), invalid,
               "kernel `scale` was loaded while a CompileOnly lived; it cannot be launched.");
}

TEST(CompileOnlyTest, ReportsABrokenKernel) {
  const KernelSource broken{.name = "broken", .text = "nonsense", .options = {}};
  const CompileOnly only({80, 90});
  const auto error = kit::caught([&] { load_kernel(broken, Device::cuda()); });
  EXPECT_EQ(error.kind, ErrorKind::device);
  EXPECT_TRUE(error.text.starts_with("kernel `broken` does not compile for sm_80")) << error.text;
  EXPECT_EQ(only.compiled(), 0);
}

TEST(CheckTest, NamesTheCallAndTheReason) {
  EXPECT_NO_THROW(check(cudaSuccess, "cudaStreamCreate"));
  EXPECT_ERROR(check(cudaErrorInvalidValue, "cudaStreamCreate"), device,
               "CUDA failed at `cudaStreamCreate`: invalid argument (cudaErrorInvalidValue).");
  EXPECT_ERROR(check(NVRTC_ERROR_INVALID_INPUT, "nvrtcCreateProgram"), device,
               "NVRTC failed at `nvrtcCreateProgram`: NVRTC_ERROR_INVALID_INPUT.");
}

TEST(CheckTest, ExhaustedMemoryIsAResourceError) {
  const auto error = kit::caught([] { check(cudaErrorMemoryAllocation, "cudaGraphLaunch"); });
  EXPECT_EQ(error.kind, ErrorKind::resource);
  EXPECT_TRUE(error.text.starts_with("CUDA failed at `cudaGraphLaunch`: out of memory"))
      << error.text;
}

}  // namespace
}  // namespace forebay::cuda
