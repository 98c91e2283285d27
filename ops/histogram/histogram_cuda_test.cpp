// Compiles every road of the device code, on a machine without a GPU. (tests/kernels_test.cpp does
// the dtypes.)
#include "kit/kit.h"

#include <forebay/array/cuda/kernel.h>
#include <forebay/ops/histogram/histogram.h>

namespace forebay {
namespace {

TEST(HistogramKernels, CompileForEveryArchitecture) {
  // The context of a CPU: preparing must load kernels and ask nothing else of CUDA.
  const Context context = kit::context(Device::cpu());
  struct Case {
    std::vector<ArraySpec> inputs;
    Histogram settings;
    int kernels;
  };
  const std::vector<Case> cases = {
      {{{Dtype::f32, {4, 1000}}},
       {.range = {{0, 1}}, .per_sample = true},
       3},                                 // edges, count, finish
      {{{Dtype::u64, {4, 1000}}}, {}, 4},  // and extremes
      {{{Dtype::i64, {4, 1000}}}, {.bins = 100'000, .range = {{0, 1e6}}}, 4},         // and zero
      {{{Dtype::bf16, {4, 1000}}, {Dtype::f16, {4, 1000}}}, {.range = {{0, 1}}}, 3},  // weights
      {{{Dtype::f64, {4, 1000}}, {Dtype::i64, {4, 1000}}}, {.bins = 100'000, .density = true}, 4},
  };
  for (const auto& [inputs, settings, kernels] : cases) {
    const cuda::CompileOnly compile_only({80, 90, 100, 120});
    const Op op = Op::with(find_op("histogram"), settings);
    const auto body = op.entry().cuda(op, {inputs, op.infer(inputs)}, context);
    EXPECT_EQ(compile_only.compiled(), kernels);
    EXPECT_GT(body->scratch_bytes(), 0U);
  }
}

}  // namespace
}  // namespace forebay
