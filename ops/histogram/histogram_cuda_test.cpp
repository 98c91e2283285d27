// Compiles every road of the device code, on a machine without a GPU. (tests/kernels_test.cpp does
// the dtypes.)
#include "kit/kit.h"

#include <forebay/array/cuda/kernel.h>
#include <forebay/array/require.h>
#include <forebay/ops/expr/device_code.h>
#include <forebay/ops/histogram/count_kernel.h>

namespace forebay {
namespace {

TEST(HistogramKernels, CompileForTheOldestAndTheNewestArchitecture) {
  // The context of a CPU: preparing must load kernels and ask nothing else of CUDA.
  const Context context = kit::context(Device::cpu());
  struct Case {
    std::vector<ArraySpec> inputs;
    Histogram settings;
    int kernels;
  };
  const std::vector<Case> cases = {
      {{{Dtype::f32, {4, 1000}}}, {.range = {{0, 1}}, .per_sample = true}, 1},  // a warp a row
      {{{Dtype::f32, {4, 100}}}, {.range = {{0, 1}}, .per_sample = true, .density = true}, 1},
      {{{Dtype::f32, {4, 20}}}, {.range = {{0, 1}}, .per_sample = true}, 1},    // 8 threads
      {{{Dtype::f32, {4, 5000}}}, {.range = {{0, 1}}, .per_sample = true}, 1},  // a block
      {{{Dtype::f32, {4, 5000}}}, {.edges = {{0, 1, 3}}}, 1},                   // blocks
      {{{Dtype::u8, {4, 5000}}}, {.range = {{0, 256}}}, 1},                     // all 256 values
      {{{Dtype::f16, {500, 5000}}}, {.bins = 1000, .range = {{0, 1}}}, 1},      // 16-bit counters
      {{{Dtype::f16, {4, 1000}}}, {.bins = 3000, .range = {{0, 1}}}, 1},        // few copies
      {{{Dtype::i32, {4, 7, 10, 100}}}, {.range = {{0, 1}}, .layout = Layout::nchw}, 1},
      {{{Dtype::i32, {4, 10, 100, 7}}}, {.range = {{0, 1}}, .layout = Layout::nhwc}, 1},
      {{{Dtype::u64, {4, 1000}}}, {}, 3},  // extremes and edges before
      {{{Dtype::i64, {4, 1000}}}, {.bins = 100'000, .range = {{0, 1e6}}}, 1},  // in device memory
      {{{Dtype::bf16, {4, 1000}}, {Dtype::f16, {4, 1000}}}, {.range = {{0, 1}}}, 1},  // weights
      {{{Dtype::f64, {4, 1000}}, {Dtype::i64, {4, 1000}}}, {.bins = 100'000, .density = true}, 3},
  };
  for (const auto& [inputs, settings, kernels] : cases) {
    const cuda::CompileOnly compile_only({80, 120});  // tests/kernels_test does all
    const Op op = Op::with(find_op("histogram"), settings);
    const auto body = op.entry().cuda(op, {inputs, op.infer(inputs)}, context);
    EXPECT_EQ(compile_only.compiled(), kernels);
    EXPECT_EQ(body->scratch_bytes() > 0, kernels > 1 || inputs.size() > 1);
  }
}

TEST(HistogramKernels, SpillNothingInBenchedKernels) {
  using namespace histogram_detail;  // NOLINT(google-build-using-namespace)
  const Context context = kit::context(Device::cpu());
  struct Case {
    ArraySpec x;
    Histogram settings;
  };
  for (const auto& [x, settings] :
       {Case{{Dtype::f32, {65536, 1024}}, {.bins = 256, .range = {{-5, 7}}}},
        {{Dtype::f32, {4096, 16384}}, {.bins = 64, .range = {{-5, 7}}, .per_sample = true}},
        {{Dtype::f32, {8192, 513}}, {.bins = 64, .range = {{0, 200}}, .per_sample = true}},
        {{Dtype::u8, {65536, 1024}}, {.bins = 64, .range = {{0, 256}}}}}) {
    const CountProblem problem{plan_edges(settings, x.dtype),
                               slices_of(x.shape, counted_axes(settings, x.shape)), x.dtype};
    const CountShape shape =
        count_shape(problem.slices, problem.plan.bins, x.dtype, {132, 227 * 1024});
    const expr::Program load = Problem{{x}, {}}.load(0);
    const std::string text = expr::device_load("LoadX", load, context).text;
    for (const int architecture : {80, 90, 100, 120}) {
      const std::string report =
          cuda::compiler_report(count_source(problem, shape, text), architecture);
      EXPECT_NE(report.find("0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads"),
                std::string::npos)
          << to_string(x.shape) << " for sm_" << architecture << ":\n"
          << report;
    }
  }
}

}  // namespace
}  // namespace forebay
