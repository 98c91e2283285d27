// The generated kernel compiles for every architecture, without spills in the lengths that are benched. Needs no GPU.
#include "kit/kit.h"

#include <forebay/array/cuda/kernel.h>
#include <forebay/array/error.h>
#include <forebay/ops/fft/rows.h>

namespace forebay {
namespace {

using dft::Kind;

TEST(RowsKernels, CompileForEveryArchitecture) {
  const Context context = kit::context(Device::cpu());
  const cuda::CompileOnly all({80, 90, 100, 120});
  int wanted = 0;
  const auto compile = [&](Kind kind, std::int64_t n, Dtype dtype, std::int64_t extent) {
    const auto t = dft::resolve(kind, n, -1, FftNorm::ortho, {dtype, {4, extent}});
    const Problem problem{.inputs = {{dtype, {4, extent}}}, .outputs = {t.out}};
    try {
      dft::prepare_rows(t, problem, context);
    } catch (const Error& error) {
      FAIL() << n << " " << name_of(dtype) << ": " << error.what();
    }
    EXPECT_EQ(all.compiled(), ++wanted);
  };
  compile(Kind::rfft, 1024, Dtype::f32, 1024);
  compile(Kind::rfft, 90, Dtype::f16, 64);
  compile(Kind::rfft, 63, Dtype::f64, 63);
  compile(Kind::fft, 30, Dtype::u8, 30);
  compile(Kind::ifft, 147, Dtype::c128, 147);
  compile(Kind::irfft, 64, Dtype::c64, 33);
  compile(Kind::irfft, 75, Dtype::c64, 20);
}

/// What ptxas says of the kernel on an H200.
std::string report(const Problem& problem) {
  const Context context = kit::context(Device::cpu());
  const auto t = dft::resolve(Kind::rfft, {}, -1, FftNorm::backward, problem.inputs[0]);
  return cuda::compiler_report(
      dft::rows_kernel(t, dft::plan_rows(t, size_of(problem.stored().dtype)),
                       expr::device_load("Load", problem.load(0), context),
                       expr::device_store("Store", problem.store(), context)),
      90);
}

/// The lengths that are benched, between the neighbours of the bench.
TEST(RowsKernels, SpillNothing) {
  using expr::Expr;
  const auto number = [](double value) { return Expr::constant(value, Dtype::f32); };
  const auto power = [](std::int64_t rows, std::int64_t n) {
    return expr::unary(expr::Opcode::norm, Expr::leaf(0, Dtype::c64, {rows, n / 2 + 1}));
  };
  const auto check = [](const Problem& problem) {
    const std::string text = report(problem);
    EXPECT_NE(text.find("0 bytes spill stores, 0 bytes spill loads"), std::string::npos)
        << testing::PrintToString(problem.inputs[0].shape) << "\n"
        << text;
  };
  for (const std::int64_t n : {400, 512, 1000, 1024, 2048, 4096}) {
    const Dims shape{4, n};
    for (const double std : {2.0, 1.7}) {
      const Expr x = (Expr::leaf(0, Dtype::f32, shape) - number(1)) / number(std);
      check({.inputs = {{Dtype::f32, shape}},
             .outputs = {{Dtype::c64, {4, n / 2 + 1}}},
             .prologue = {expr::maximum(expr::minimum(x, number(3)), number(-3))},
             .epilogue = expr::unary(expr::Opcode::log1p, power(4, n))});
    }
  }
  const Dims frames{998, 400};
  const Array window = kit::random({400}, Dtype::f32, 1);
  check({.inputs = {{Dtype::f32, frames}},
         .outputs = {{Dtype::c64, {998, 201}}},
         .prologue = {Expr::leaf(0, Dtype::f32, frames, {160, 1}) *
                      expr::broadcast_to(Expr::array(window), frames)},
         .epilogue = power(998, 400)});
}

}  // namespace
}  // namespace forebay
