// Compiles every road of the device code, on a machine without a GPU. (tests/kernels_test.cpp does
// the dtypes.)
#include "kit/kit.h"

#include <forebay/array/cuda/kernel.h>
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
      {{Dtype::f32, {8, 1024}}, {.axes = {{1}}}, 2},  // rows in vectors, slices
      {{Dtype::u8, {8, 3, 7}}, {.layout = Layout::ncl, .dtype = Dtype::f16}, 1},  // slices
      {{Dtype::f32, {100'000}}, {.mean = 3}, 3},  // moments, merge, apply
      {{Dtype::i64, {50'000, 3}}, {.std = 2, .layout = Layout::nc, .dtype = Dtype::f64}, 3},
      {{Dtype::f32, {0, 4}}, {.axes = {{1}}}, 0},
  };
  for (const auto& [x, settings, kernels] : cases) {
    const cuda::CompileOnly compile_only({80, 90, 100, 120});
    const Op op = Op::with(find_op("normalize"), settings);
    const auto body = op.entry().cuda(op, {{x}, op.infer({&x, 1})}, context);
    EXPECT_EQ(compile_only.compiled(), kernels);
    EXPECT_EQ(body->scratch_bytes() > 0, kernels == 3);
  }
}

}  // namespace
}  // namespace forebay
