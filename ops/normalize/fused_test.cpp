// normalize with pointwise neighbours fused before and behind it, against the definition, and
// against the same steps apart.
#include <array>
#include <functional>

#include <forebay/array/require.h>
#include <forebay/ops/body_test.h>
#include <forebay/ops/normalize/oracle_test.h>
#include <forebay/ops/registry.h>

namespace forebay {
namespace {

using namespace normalize_oracle;  // NOLINT(google-build-using-namespace): the tests' words
using expr::Expr;
using expr::Opcode;

Expr number(double value, Dtype dtype = Dtype::f32) { return Expr::constant(Number(value), dtype); }
Expr leaf_of(const Array& x, int source = 0) { return Expr::leaf(source, x.dtype(), x.shape()); }

/// x through `before`, normalized over `reduced`, through `behind` (whose source 1 is x).
struct Case {
  std::string what;
  Array x;
  std::function<Expr(Expr)> before;
  Normalize settings;
  std::set<int> reduced;
  std::function<Expr(Expr, Expr)> behind;             ///< of the result and x
  std::function<double(double, std::int64_t)> exact;  ///< of the exact result and its number
};

Problem problem_of(const Op& op, const Case& c) {
  Problem problem;
  const Expr input = c.before ? c.before(leaf_of(c.x)) : leaf_of(c.x);
  problem.inputs = {{input.dtype(), input.shape()}};
  problem.outputs = op.infer(problem.inputs);
  problem.prologue = {input};
  if (c.behind) {
    problem.epilogue = c.behind(Expr::leaf(0, problem.outputs[0].dtype, problem.outputs[0].shape),
                                leaf_of(c.x, 1));
  }
  return problem;
}

Expr clip_to_f16(const Expr& y, const Expr&) {
  return cast(minimum(maximum(y, number(-1.5)), number(1.5)), Dtype::f16);
}
double clipped(double z, std::int64_t) { return std::isnan(z) ? z : std::clamp(z, -1.5, 1.5); }

Expr widened(const Expr& x) { return cast(x, Dtype::f32); }
Expr scaled(const Expr& x) { return cast(x, Dtype::f32) * number(0.37) + number(11); }
Expr channels_first(const Expr& x) { return permute(cast(x, Dtype::f32), {0, 3, 1, 2}); }
Expr transposed(const Expr& x) { return permute(x, {1, 0}); }

/// Rows of each kind of road: several a warp, a warp, a block, those that do not fit, and so many
/// that results go past the caches.
std::vector<Case> rows() {
  std::vector<Case> all;
  for (const Dims& shape : {Dims{70, 7}, Dims{33, 64}, Dims{37, 1000}, Dims{5, 1023},
                            Dims{3, 20000}, Dims{1300, 1000}, Dims{2, 150001}, Dims{2, 262144}}) {
    const Array u8 = kit::random(shape, Dtype::u8, 1, 0, 255);
    const Normalize settings{.axes = {{1}}};
    all.push_back({"u8 widened, " + to_string(shape), u8, widened, settings, {1}, {}, {}});
    all.push_back({"clipped to f16, " + to_string(shape),
                   kit::random(shape, Dtype::f32, 2),
                   {},
                   settings,
                   {1},
                   clip_to_f16,
                   clipped});
    all.push_back({"u8 scaled, clipped to f16, " + to_string(shape),
                   u8,
                   scaled,
                   settings,
                   {1},
                   clip_to_f16,
                   clipped});
  }
  return all;
}

std::vector<Case> layouts() {
  std::vector<Case> all;
  for (const Dims& shape : {Dims{2, 5, 7, 3}, Dims{3, 64, 60, 3}, Dims{2, 128, 256, 4}}) {
    const Array u8 = kit::random(shape, Dtype::u8, 3, 0, 255);
    all.push_back({"NHWC to NCHW, per channel, " + to_string(shape),
                   u8,
                   channels_first,
                   {.layout = Layout::nchw},
                   {0, 2, 3},
                   clip_to_f16,
                   clipped});
    all.push_back({"NHWC to NCHW, per sample, " + to_string(shape),
                   u8,
                   channels_first,
                   {.layout = Layout::nchw, .per_sample = true},
                   {2, 3},
                   clip_to_f16,
                   clipped});
    all.push_back({"NHWC, per channel, " + to_string(shape),
                   u8,
                   scaled,
                   {.layout = Layout::nhwc},
                   {0, 1, 2},
                   clip_to_f16,
                   clipped});
  }
  for (const Dims& shape : {Dims{65, 43}, Dims{1024, 40}, Dims{300, 515}, Dims{40000, 6}}) {
    const Array x = kit::random(shape, Dtype::f32, 4);
    all.push_back({"rows of a transposed array, " + to_string(shape),
                   x,
                   transposed,
                   {.axes = {{1}}},
                   {1},
                   clip_to_f16,
                   clipped});
    all.push_back({"columns of a transposed array, " + to_string(shape),
                   x,
                   transposed,
                   {.axes = {{0}}},
                   {0},
                   {},
                   {}});
    all.push_back(
        {"columns, " + to_string(shape), x, scaled, {.axes = {{0}}}, {0}, clip_to_f16, clipped});
  }
  return all;
}

/// Other dtypes, given constants, and a store that reads the input again.
std::vector<Case> others() {
  std::vector<Case> all;
  const auto or_x = [](const Expr& y, const Expr& x) { return maximum(y, x); };
  for (const Dims& shape : {Dims{9, 130}, Dims{2, 70000}}) {
    const Array x = kit::random(shape, Dtype::f32, 5);
    const auto z_or_x = [x](double z, std::int64_t i) { return std::fmax(z, x.as<float>()[i]); };
    all.push_back({"or its input, " + to_string(shape), x, {}, {.axes = {{1}}}, {1}, or_x, z_or_x});
    const auto wide = [](const Expr& y) { return cast(y, Dtype::i64); };
    all.push_back({"i64, " + to_string(shape),
                   kit::random(shape, Dtype::i32, 6, -9000, 9000),
                   wide,
                   {.axes = {{1}}, .dtype = Dtype::f64},
                   {1},
                   [](const Expr& y, const Expr&) { return y * number(0.5, Dtype::f64); },
                   [](double z, std::int64_t) { return z / 2; }});
    all.push_back({"f64 from f32, " + to_string(shape),
                   x,
                   [](const Expr& y) { return cast(y, Dtype::f64); },
                   {.axes = {{1}}},
                   {1},
                   {},
                   {}});
    all.push_back({"f16, " + to_string(shape),
                   kit::random(shape, Dtype::f16, 7),
                   [](const Expr& y) { return y + y; },
                   {.axes = {{1}}},
                   {1},
                   {},
                   {}});
    all.push_back({"given mean, " + to_string(shape),
                   x,
                   scaled,
                   {.mean = 10.5, .axes = {{1}}},
                   {1},
                   clip_to_f16,
                   clipped});
    all.push_back({"given std, " + to_string(shape),
                   x,
                   scaled,
                   {.std = 2.5, .axes = {{1}}},
                   {1},
                   clip_to_f16,
                   clipped});
    all.push_back({"equal elements, " + to_string(shape),
                   x,
                   [](const Expr& y) { return y * number(0) + number(3); },
                   {.axes = {{1}}, .zero_std = ZeroStd::zero},
                   {1},
                   clip_to_f16,
                   clipped});
  }
  return all;
}

class FusedNormalize : public kit::DeviceTest {
 protected:
  void check(const std::vector<Case>& cases) {
    const Context context = kit::context(device()), cpu = kit::context(Device::cpu());
    for (const Case& c : cases) {
      const Op op = Op::with(find_op("normalize"), c.settings);
      const Problem problem = problem_of(op, c);
      const Array x = kit::to_device(c.x, context);
      const Array got = results_of(*op.entry().body(device().kind)(op, problem, context), problem,
                                   {x}, context)[0];
      const Array input = kit::to_host(eval(problem.prologue[0], {c.x}, cpu), cpu);
      Oracle want = oracle(input, c.reduced, c.settings);
      for (std::size_t i = 0; c.exact && i < want.values.size(); ++i)
        want.values[i] = c.exact(want.values[i], static_cast<std::int64_t>(i));
      EXPECT_TRUE(within_bounds(got, want)) << c.what;
      // On CUDA the order of sums follows the dtypes in memory: within the same bound.
      Array apart = run_op(op, {eval(problem.prologue[0], {x}, context)}, context)[0];
      if (problem.epilogue.valid()) apart = eval(problem.epilogue, {apart, x}, context);
      apart = kit::to_host(apart, context);
      EXPECT_TRUE(within_bounds(apart, want)) << c.what << ", apart";
      if (!device().is_cuda()) {
        EXPECT_TRUE(kit::same_bits(got, apart)) << c.what;
      }
    }
  }
};

DEVICE_TEST(FusedNormalize, OfRowsIsRight) { check(rows()); }
DEVICE_TEST(FusedNormalize, OfAnyLayoutIsRight) { check(layouts()); }
DEVICE_TEST(FusedNormalize, OfOtherDtypesAndConstantsIsRight) { check(others()); }


TEST(FusedNormalizePlan, FusesWhereStatisticsAreComputed) {
  const OpDef& def = find_op("normalize").def;
  const auto fuses = [&](const Normalize& settings, DeviceKind device) {
    const Fusion fusion = def.fuses(&settings, {}, device);
    EXPECT_EQ(fusion.prologue, fusion.epilogue);
    return fusion.prologue;
  };
  for (const DeviceKind device : {DeviceKind::cpu, DeviceKind::cuda}) {
    EXPECT_TRUE(fuses({}, device));
    EXPECT_TRUE(fuses({.mean = 1}, device));
    EXPECT_FALSE(fuses({.mean = 1, .std = 2}, device));
  }
}

}  // namespace
}  // namespace forebay
