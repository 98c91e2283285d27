// Compiles every road of the device code, on a machine without a GPU. (tests/kernels_test.cpp does
// the dtypes.)
#include "kit/kit.h"

#include <forebay/array/cuda/kernel.h>
#include <forebay/array/require.h>
#include <forebay/ops/normalize/normalize.h>

namespace forebay {
namespace {

TEST(NormalizeKernels, CompileForEveryArchitecture) {
  // The context of a CPU: preparing must load kernels and ask nothing else of CUDA.
  const Context context = kit::context(Device::cpu());
  struct Case {
    ArraySpec x;
    Normalize settings;
    int kernels;
  };
  const std::vector<Case> cases = {
      {{Dtype::f32, {8, 1024}}, {.axes = {{1}}}, 1},                              // rows
      {{Dtype::u8, {8, 3, 7}}, {.layout = Layout::ncl, .dtype = Dtype::f16}, 1},  // slices
      {{Dtype::f32, {100'000}}, {.mean = 3}, 2},                                  // moments, apply
      {{Dtype::i64, {50'000, 3}}, {.std = 2, .layout = Layout::nc, .dtype = Dtype::f64}, 2},
      {{Dtype::f32, {0, 4}}, {.axes = {{1}}}, 0},
  };
  for (const auto& [x, settings, kernels] : cases) {
    const cuda::CompileOnly compile_only({80, 90, 100, 120});
    const Op op = Op::with(find_op("normalize"), settings);
    const auto body = op.entry().cuda(op, {{x}, op.infer({&x, 1})}, context);
    EXPECT_EQ(compile_only.compiled(), kernels);
    EXPECT_EQ(body->scratch_bytes() > 0, kernels == 2);
  }
}

TEST(NormalizeKernels, SpillNothingInBenchedKernels) {
  const Context context = kit::context(Device::cpu());
  const std::vector<std::pair<Dims, Normalize>> cases = {
      {{65536, 1024}, {.axes = {{1}}}},
      {{65536, 1023}, {.axes = {{1}}}},
      {{1 << 20, 32}, {.axes = {{1}}}},
      {{4096, 16384}, {.axes = {{1}}}},
      {{65536, 1024}, {}},
      {{65536, 1024}, {.axes = {{0}}}},
      {{256, 3, 224, 224}, {.layout = Layout::nchw}},
      {{256, 224, 224, 3}, {.layout = Layout::nhwc}},
  };
  for (const auto& [shape, settings] : cases) {
    const cuda::CompileOnly compile_only({});
    const ArraySpec x{Dtype::f32, shape};
    const Op op = Op::with(find_op("normalize"), settings);
    const auto body = op.entry().cuda(op, {{x}, op.infer({&x, 1})}, context);
    for (const cuda::KernelSource& source : compile_only.sources()) {
      for (const int architecture : {80, 90, 100, 120}) {
        const std::string report = cuda::compiler_report(source, architecture);
        EXPECT_NE(report.find("0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads"),
                  std::string::npos)
            << source.name << " of " << to_string(shape) << " for sm_" << architecture << ":\n"
            << report;
      }
    }
  }
}

}  // namespace
}  // namespace forebay
