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

}  // namespace
}  // namespace forebay
