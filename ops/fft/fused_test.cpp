// fft, ifft, rfft and irfft with pointwise neighbours fused before and behind them, against
// the definition.
#include <array>
#include <atomic>
#include <cmath>
#include <thread>

#include <forebay/ops/body_test.h>
#include <forebay/ops/eager.h>
#include <forebay/ops/fft/fft.h>
#include <forebay/ops/fft/oracle_test.h>
#include <forebay/ops/fft/rows.h>
#include <forebay/ops/ifft/ifft.h>
#include <forebay/ops/irfft/irfft.h>
#include <forebay/ops/registry.h>
#include <forebay/ops/rfft/rfft.h>

namespace forebay {
namespace {

using dft::Kind;
using expr::Expr;
using expr::Opcode;

constexpr const char* kNames[] = {"fft", "ifft", "rfft", "irfft"};

Op op_of(Kind kind, std::int64_t n, FftNorm norm = FftNorm::ortho) {
  const OpEntry& entry = find_op(kNames[static_cast<int>(kind)]);
  switch (kind) {
    case Kind::fft:
      return Op::with(entry, Fft{.n = n, .norm = norm});
    case Kind::ifft:
      return Op::with(entry, Ifft{.n = n, .norm = norm});
    case Kind::rfft:
      return Op::with(entry, Rfft{.n = n, .norm = norm});
    default:
      return Op::with(entry, Irfft{.n = n, .norm = norm});
  }
}

enum class Behind : std::uint8_t { nothing, linear, log_power };

/// A transform of x, of `source` numbers, through a window and a scale to `dtype`.
struct Case {
  Kind kind = Kind::rfft;
  std::int64_t n = 8, extent = 8, rows = 3;
  Dtype source = Dtype::f32, dtype = Dtype::f32;
  Behind behind = Behind::linear;
};

Expr constant(double value, Dtype dtype) { return Expr::constant(Number(value), dtype); }

Array window_of(const Case& c) {
  return kit::random({c.extent}, is_complex(c.dtype) ? c.dtype : Dtype::f32, 5, 0, 1);
}
Expr before(const Case& c) {
  const Dims shape{c.rows, c.extent};
  const Expr x = cast(Expr::leaf(0, c.source, shape), c.dtype);
  const Expr window = broadcast_to(cast(Expr::array(window_of(c)), c.dtype), shape);
  return (x * window) / constant(1.7, c.dtype);
}
Expr behind(const Case& c, const ArraySpec& result) {
  const Expr y = Expr::leaf(0, result.dtype, result.shape);
  const Dtype real = real_of(result.dtype);
  if (c.behind == Behind::log_power)
    return unary(Opcode::log, unary(Opcode::norm, y) + constant(1e-6, real));
  return is_complex(result.dtype) ? unary(Opcode::conj, y) : y + constant(1, real);
}

Problem problem_of(const Op& op, const Case& c) {
  Problem problem;
  problem.inputs = {{c.dtype, {c.rows, c.extent}}};
  problem.outputs = op.infer(problem.inputs);
  problem.prologue = {before(c)};
  if (c.behind != Behind::nothing) problem.epilogue = behind(c, problem.outputs[0]);
  return problem;
}

/// Half-precision results of the window are rounded before they are transformed: the law of f16.
testing::AssertionResult is_right(const Case& c, const Array& got, const Array& x) {
  const Context cpu = kit::context(Device::cpu());
  const Array input = kit::to_host(eval(before(c), {x}, cpu), cpu);
  auto want = oracle::transform(c.kind, input, {.n = c.n, .norm = FftNorm::ortho});
  if (c.behind != Behind::log_power) {
    for (oracle::Complex& value : want) {
      if (c.behind == Behind::linear)
        value = is_complex(got.dtype()) ? std::conj(value) : value + 1.0;
    }
    return oracle::close(got, want, c.n);
  }
  // Of the logarithm the magnitude it stands for: its own rounding comes on top.
  double error = 0, size = 0, largest = 1;
  for (std::size_t i = 0; i < want.size(); ++i) {
    const double y = kit::value(got.view(), static_cast<std::int64_t>(i));
    const double magnitude = std::sqrt(std::norm(want[i]) + 1e-6);
    error += std::pow(std::exp(y / 2) - magnitude, 2);
    size += magnitude * magnitude;
    largest = std::max(largest, std::abs(y));
  }
  const double bound = kit::epsilon(got.dtype()) *
                       (4 * std::max(std::log2(static_cast<double>(c.n)), 1.0) + 2 * largest);
  const double relative = std::sqrt(error / size);
  if (relative <= bound) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "relative error " << relative << " above " << bound;
}

std::string text(const Case& c) {
  return fmt::format("{} n {} of {} x {}, {} as {}, behind {}", kNames[static_cast<int>(c.kind)],
                     c.n, c.rows, c.extent, name_of(c.source), name_of(c.dtype),
                     static_cast<int>(c.behind));
}

/// Prepares all cases, several at a time since each may compile a kernel; then runs and
/// checks them.
void check_all(const std::vector<Case>& cases, Device device) {
  const Context context = kit::context(device);
  std::vector<std::shared_ptr<Body>> bodies(cases.size());
  std::vector<Problem> problems(cases.size());
  std::atomic<std::size_t> next = 0;
  std::vector<std::jthread> threads(std::max(1U, std::thread::hardware_concurrency()));
  for (std::jthread& thread : threads) {
    thread = std::jthread([&] {
      const Context own = kit::context(device);
      for (std::size_t i = next++; i < cases.size(); i = next++) {
        const Op op = op_of(cases[i].kind, cases[i].n);
        problems[i] = problem_of(op, cases[i]);
        bodies[i] = op.entry().body(device.kind)(op, problems[i], own);
      }
    });
  }
  threads.clear();
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Case& c = cases[i];
    const Array x = kit::random({c.rows, c.extent}, c.source, i, is_integer(c.source) ? 0 : -4,
                                is_integer(c.source) ? 100 : 4);
    const Array got = results_of(*bodies[i], problems[i], {kit::to_device(x, context)}, context)[0];
    EXPECT_TRUE(is_right(c, got, x)) << text(c);
  }
}

class FusedFftTest : public kit::DeviceTest {};

DEVICE_TEST(FusedFftTest, EveryShortLengthAndManyLonger) {
  std::vector<std::int64_t> lengths{75,   80,   81,   96,   98,   100,  125,  128,  135,  200,
                                    243,  256,  343,  400,  500,  512,  625,  1000, 1024, 1200,
                                    1536, 2000, 2048, 2401, 3125, 4000, 4096, 6000, 8192};
  for (std::int64_t n = 1; n <= 64; ++n)
    lengths.push_back(n);
  std::vector<Case> cases;
  for (const std::int64_t n : lengths) {
    const bool fits =
        dft::rows_fit(dft::resolve(Kind::rfft, n, -1, FftNorm::ortho, {Dtype::f32, {1, n}}));
    if (device().is_cuda() && !fits) continue;
    cases.push_back({.n = n, .extent = n, .rows = n > 2000 ? 3 : 37, .behind = Behind::log_power});
  }
  check_all(cases, device());
}

DEVICE_TEST(FusedFftTest, EveryKindCroppedAndPadded) {
  std::vector<Case> cases;
  for (const std::int64_t n : {1, 2, 12, 15, 60, 128, 147, 250}) {
    for (const std::int64_t extra : {-3, 0, 5}) {
      const std::int64_t rows = 5;
      const auto add = [&](Kind kind, Dtype source, Dtype dtype, std::int64_t whole) {
        const std::int64_t extent = std::max<std::int64_t>(whole + extra, 1);
        cases.push_back({kind, n, extent, rows, source, dtype, Behind::linear});
        if (extra == 0) cases.push_back({kind, n, extent, rows, source, dtype, Behind::nothing});
      };
      add(Kind::fft, Dtype::c64, Dtype::c64, n);
      add(Kind::ifft, Dtype::c64, Dtype::c64, n);
      add(Kind::fft, Dtype::f32, Dtype::f32, n);
      add(Kind::ifft, Dtype::i16, Dtype::f32, n);
      add(Kind::rfft, Dtype::f16, Dtype::f16, n);
      add(Kind::rfft, Dtype::u8, Dtype::bf16, n);
      add(Kind::rfft, Dtype::f64, Dtype::f64, n);
      add(Kind::fft, Dtype::c128, Dtype::c128, n);
      add(Kind::irfft, Dtype::c64, Dtype::c64, n / 2 + 1);
      add(Kind::irfft, Dtype::c128, Dtype::c128, n / 2 + 1);
      add(Kind::irfft, Dtype::f32, Dtype::f32, n / 2 + 1);
    }
  }
  check_all(cases, device());
}

/// Overlapping frames of a signal are a strided leaf, at any alignment; the result is what the
/// frames alone give.
DEVICE_TEST(FusedFftTest, FramesOfASignal) {
  const Context context = kit::context(device()), cpu = kit::context(Device::cpu());
  for (const std::int64_t hop : {160, 7}) {
    const std::int64_t n = 400, frames = 20, length = n + (frames - 1) * hop;
    const Array signal = kit::random({3, length + 1}, Dtype::f32, 1);
    for (const std::int64_t start : {0, 1}) {
      const Expr x = Expr::leaf(0, Dtype::f32, {3, frames, n}, {length + 1, hop, 1});
      const Array moved = kit::to_device(signal, context);
      ArrayView view = moved.view();
      view.data = moved.as<float>() + start;
      Problem problem;
      problem.inputs = {{Dtype::f32, {3, frames, n}}};
      const Op op = op_of(Kind::rfft, n);
      problem.outputs = op.infer(problem.inputs);
      problem.prologue = {x *
                          broadcast_to(Expr::array(kit::random({n}, Dtype::f32, 2)), x.shape())};
      const Array out = Array::empty(problem.outputs[0].shape, Dtype::c64, context);
      run_body(*op.entry().body(device().kind)(op, problem, context), {view}, {out.view()},
               context);
      const Array host = kit::to_host(
          eval(Expr::leaf(0, Dtype::f32, {3, frames, n}, {length + 1, hop, 1}) *
                   broadcast_to(Expr::array(kit::random({n}, Dtype::f32, 2)), x.shape()),
               {signal.slice(1, start, length + start)}, cpu),
          cpu);
      EXPECT_TRUE(oracle::close(kit::to_host(out, context),
                                oracle::transform(Kind::rfft, host, {.norm = FftNorm::ortho}), n))
          << hop << " " << start;
    }
  }
}

/// On CUDA, nothing fused, what cuFFT would need more passes for is one kernel of ours where there
/// is much of it.
DEVICE_TEST(FusedFftTest, ScaledAndConvertedWithoutNeighbours) {
  const Context context = kit::context(device());
  const std::int64_t n = 12, rows = (1 << 20) / n + 3;
  oracle::check(Kind::rfft, rfft, kit::random({rows, n}, Dtype::f32, 1), {.norm = FftNorm::ortho},
                context);
  oracle::check(Kind::rfft, rfft, kit::random({rows, n}, Dtype::f16, 2), {}, context);
  oracle::check(Kind::ifft, ifft, kit::random({rows, n}, Dtype::c64, 3), {}, context);
  oracle::check(Kind::fft, fft, kit::random({rows, n}, Dtype::f32, 4), {}, context);
  oracle::check(Kind::irfft, irfft, kit::random({rows, n / 2 + 1}, Dtype::c64, 5), {}, context);
  oracle::check(Kind::rfft, rfft,
                kit::random({rows, n}, Dtype::f32, 6).slice(0, 1, rows).slice(1, 0, n), {},
                context);
}

TEST(FusedFft, GivesTheBitsOfSeparateStepsOnTheCpu) {
  const Context cpu = kit::context(Device::cpu());
  for (const std::int64_t n : {30, 101, 1024, 5000}) {
    const Case c{.n = n, .extent = n, .rows = 50, .behind = Behind::log_power};
    const Op op = op_of(Kind::rfft, n);
    const Problem problem = problem_of(op, c);
    const Array x = kit::random({c.rows, n}, Dtype::f32, 3);
    const Array spectrum = rfft(eval(before(c), {x}, cpu), {.n = n, .norm = FftNorm::ortho}, cpu);
    const Array apart = eval(behind(c, problem.outputs[0]), {spectrum}, cpu);
    EXPECT_TRUE(kit::same_bits(results_of(*op.entry().cpu(op, problem, cpu), problem, {x}, cpu)[0],
                               kit::to_host(apart, cpu)))
        << n;
  }
}

// ---- Which are fused, and how rows are cut.

TEST(FusedFft, AlongTheLastAxisAndOnCudaWhereARowFits) {
  const auto fuses = [](const Dims& shape, std::int64_t axis, Dtype dtype, DeviceKind device) {
    const Rfft settings{.axis = axis};
    const Problem problem{.inputs = {{dtype, shape}}, .outputs = {}};
    const Fusion fusion = find_op("rfft").def.fuses(&settings, problem, device);
    EXPECT_EQ(fusion.prologue, fusion.epilogue);
    return fusion.prologue;
  };
  for (const DeviceKind device : {DeviceKind::cpu, DeviceKind::cuda}) {
    EXPECT_TRUE(fuses({4, 1024}, -1, Dtype::f32, device));
    EXPECT_TRUE(fuses({4, 3, 400}, 2, Dtype::u8, device));
    EXPECT_FALSE(fuses({4, 1024}, 0, Dtype::f32, device));
    EXPECT_TRUE(fuses({8192}, 0, Dtype::f32, device));
    EXPECT_TRUE(fuses({4096}, 0, Dtype::f64, device));
  }
  EXPECT_TRUE(fuses({4, 31}, 1, Dtype::f32, DeviceKind::cpu));
  EXPECT_FALSE(fuses({4, 31}, 1, Dtype::f32, DeviceKind::cuda));
  EXPECT_FALSE(fuses({4, 8194}, 1, Dtype::f32, DeviceKind::cuda));
  EXPECT_FALSE(fuses({4, 16384}, 1, Dtype::f32, DeviceKind::cuda));
  EXPECT_FALSE(fuses({4, 8192}, 1, Dtype::f64, DeviceKind::cuda));
}

/// Of many lengths: the passes cover the row, the registers of a thread and the memory of a block
/// suffice, and no two elements share a place.
TEST(RowsPlan, IsSound) {
  int fitting = 0;
  for (const Dtype dtype : {Dtype::f32, Dtype::f64, Dtype::c64, Dtype::c128}) {
    for (std::int64_t n = 1; n <= 8192; n += n < 100 ? 1 : n / 40) {
      const auto t = dft::resolve(is_complex(dtype) ? Kind::fft : Kind::rfft, n, -1, FftNorm::ortho,
                                  {dtype, {4, n}});
      if (!dft::rows_fit(t)) continue;
      ++fitting;
      const dft::RowsPlan plan = dft::plan_rows(t, 2 * size_of(t.out.dtype));
      int product = 1;
      for (const dft::RowPass& pass : plan.passes) {
        EXPECT_EQ(pass.before, product) << n;
        EXPECT_EQ(pass.lines * pass.radix, plan.length) << n;
        product *= pass.radix;
        std::vector<int> lines;
        for (int thread = 0; thread < plan.threads; ++thread) {
          for (int b = 0; b < pass.each; ++b)
            lines.push_back(pass.line(thread, b, plan.threads));
        }
        std::sort(lines.begin(), lines.end());
        ASSERT_GE(static_cast<int>(lines.size()), pass.lines) << n;
        for (int line = 0; line < pass.lines; ++line)
          ASSERT_EQ(lines[static_cast<std::size_t>(line)], line) << n;
      }
      EXPECT_EQ(product, plan.length) << n;
      EXPECT_LE(plan.elements(), size_of(t.real) == 8 ? 16 : 32) << n;
      EXPECT_LE(plan.rows * plan.threads, 512) << n;
      const std::int64_t words = plan.row_words * static_cast<std::int64_t>(2 * size_of(t.real));
      const std::int64_t written =
          plan.together ? t.extent_out * static_cast<std::int64_t>(2 * size_of(t.out.dtype)) : 0;
      EXPECT_LE(plan.rows * std::max(words, written), 48 << 10) << n;
      for (const dft::Padding& padding : plan.exchanges)
        EXPECT_LT(padding.place(plan.length - 1), plan.row_words) << n;
    }
  }
  EXPECT_GT(fitting, 200);
}

TEST(RowsSource, IsReadable) {
  const auto t = dft::resolve(Kind::rfft, 1024, -1, FftNorm::ortho, {Dtype::f32, {4, 1024}});
  const dft::RowsSource source = dft::rows_source(t, dft::plan_rows(t, 4));
  EXPECT_NE(source.constants.find("// rfft of 1024 points, pairs of reals as one: "),
            std::string::npos)
      << source.constants;
  EXPECT_NE(source.kernel.find("read_pairs<P0>(v0, t, x);\n  transform_lines<P0>(v0);\n"
                               "  exchange<P0, P1, "),
            std::string::npos)
      << source.kernel;
}

}  // namespace
}  // namespace forebay
