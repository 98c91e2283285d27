// Every op of the registry x device x dtype x layout x size. The values themselves are checked
// against oracles in each op's own test; here one device and layout must agree with every other,
// and nothing may be skipped in silence.
#include "kit/kit.h"

#include <cmath>

#include <forebay/array/require.h>
#include <forebay/ops/random_test.h>
#include <forebay/pipeline/config/config.h>

namespace forebay {
namespace {

struct Case {
  std::string op;
  Dtype dtype;
  Device device;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const OpEntry& entry : registry()) {
    for (const Dtype dtype : kAllDtypes) {
      for (const Device device : kit::devices())
        all.push_back({std::string(entry.def.name), dtype, device});
    }
  }
  return all;
}

/// Shapes that some op's example accepts: ranks 1 to 4, extents of 0, 1, around a warp and
/// past a tile.
const std::vector<Dims> kShapes = {{0},        {1},         {7},       {1025},       {3, 5},
                                   {8, 8},     {0, 8},      {33, 31},  {64, 257},    {2, 3, 4},
                                   {5, 1, 33}, {3, 8, 8},   {2, 0, 4}, {2, 3, 5, 7}, {2, 8, 8, 3},
                                   {4, 16},    {1, 1, 1, 1}};

std::vector<ArraySpec> specs(const OpDef& def, Dtype dtype, const Dims& shape) {
  return std::vector<ArraySpec>(def.inputs.size(), ArraySpec{dtype, shape});
}

/// The largest finite magnitude of the values: the scale that rounding errors of sums are
/// measured against.
double scale(const Array& host) {
  double largest = 0;
  for (const auto& value : kit::complex_values(host)) {
    if (std::isfinite(std::abs(value))) largest = std::max(largest, std::abs(value));
  }
  return largest;
}

class Conformance : public testing::TestWithParam<Case> {};

TEST_P(Conformance, EveryLayoutAndDeviceGivesTheSameAnswer) {
  const auto& [name, dtype, device] = GetParam();
  SKIP_WITHOUT(device);
  const OpEntry& entry = find_op(name);
  ASSERT_FALSE(entry.def.example.empty()) << "the op has no example";
  const Op op = parse_stage(entry.def.example).op;
  const Context cpu = kit::context(Device::cpu());
  const Context context = kit::context(device);

  for (const Dims& shape : kShapes) {
    const auto inputs = specs(entry.def, dtype, shape);
    try {
      op.infer(inputs);
    } catch (const Error&) {
      continue;  // refused before any data is touched, which is the other right answer
    }
    std::vector<Array> dense;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      dense.push_back(kit::random(shape, dtype, 7 + i, is_integer(dtype) ? 0 : -4,
                                  is_integer(dtype) ? 100 : 4));
    }
    // What a random op draws is of these samples; others draw nothing.
    const auto want = run_op(op, dense, test::draw_of(shape[0], cpu), cpu);
    cpu.stream.synchronize();
    for (const kit::Layout layout : kit::layouts()) {
      std::vector<Array> given;
      for (const Array& x : dense)
        given.push_back(kit::to_device(kit::with_layout(x, layout), context));
      const auto got = run_op(op, given, test::draw_of(shape[0], context), context);
      context.stream.synchronize();
      ASSERT_EQ(got.size(), want.size());
      for (std::size_t i = 0; i < got.size(); ++i) {
        const Array host = kit::to_host(got[i], context);
        const auto where = fmt::format("{} {} {}, output {}, layout {}", name, name_of(dtype),
                                       to_string(shape), i, static_cast<int>(layout));
        const bool exact =
            !device.is_cuda() || is_integer(host.dtype()) || host.dtype() == Dtype::boolean;
        if (exact) {
          EXPECT_TRUE(kit::same_bits(host, want[i])) << where;
        } else {
          const double bound = 64 * kit::epsilon(host.dtype());
          EXPECT_TRUE(kit::near(host, kit::complex_values(want[i]), bound, bound * scale(want[i])))
              << where;
        }
      }
    }
  }
}

TEST(ConformanceCoverage, EveryOpAcceptsSomething) {
  for (const OpEntry& entry : registry()) {
    ASSERT_FALSE(entry.def.example.empty()) << entry.def.name << " has no example";
    const Op op = parse_stage(entry.def.example).op;
    int accepted = 0;
    for (const Dims& shape : kShapes) {
      try {
        op.infer(specs(entry.def, Dtype::f32, shape));
        ++accepted;
      } catch (const Error&) {
      }
    }
    EXPECT_GT(accepted, 1) << entry.def.name << ": its example accepts none of the shapes";
    EXPECT_TRUE(entry.cpu != nullptr || entry.def.lower != nullptr)
        << entry.def.name << " has no CPU body";
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, Conformance, testing::ValuesIn(cases()), [](const auto& test) {
  return fmt::format("{}_{}_{}", test.param.op, name_of(test.param.dtype),
                     test.param.device.is_cuda() ? "cuda" : "cpu");
});

}  // namespace
}  // namespace forebay
