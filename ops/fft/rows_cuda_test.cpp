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

/// The lengths that are benched, between the neighbours of the bench.
TEST(RowsKernels, SpillNothing) {
  const Context context = kit::context(Device::cpu());
  for (const std::int64_t n : {400, 512, 1000, 1024, 2048, 4096}) {
    const ArraySpec x{Dtype::f32, {4, n}};
    const auto t = dft::resolve(Kind::rfft, n, -1, FftNorm::backward, x);
    const auto number = [](double value) { return expr::Expr::constant(value, Dtype::f32); };
    const expr::Expr clipped = expr::maximum(
        expr::minimum((expr::Expr::leaf(0, x.dtype, x.shape) - number(1)) / number(2), number(3)),
        number(-3));
    const expr::Expr power =
        expr::unary(expr::Opcode::norm, expr::Expr::leaf(0, t.out.dtype, t.out.shape));
    const Problem problem{.inputs = {x},
                          .outputs = {t.out},
                          .prologue = {clipped},
                          .epilogue = expr::unary(expr::Opcode::log1p, power)};
    const auto source = dft::rows_kernel(t, dft::plan_rows(t, 4),
                                         expr::device_load("Load", problem.load(0), context),
                                         expr::device_store("Store", problem.store(), context));
    const std::string report = cuda::compiler_report(source, 90);
    EXPECT_NE(report.find("0 bytes spill stores, 0 bytes spill loads"), std::string::npos)
        << n << "\n"
        << report;
  }
}

}  // namespace
}  // namespace forebay
