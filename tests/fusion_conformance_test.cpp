// Every op of the registry between two pointwise stages, fused and with fusion off: the same plan
// must give the same answer. What fuses is up to the planner; that something does is checked, too.
#include <cmath>

#include <forebay/array/require.h>
#include <forebay/ops/abs/abs.h>
#include <forebay/ops/clip/clip.h>
#include <forebay/pipeline.h>
#include <forebay/pipeline/config/config.h>
#include <forebay/pipeline/program.h>

#include "kit/kit.h"

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
    for (const Dtype dtype :
         {Dtype::u8, Dtype::i32, Dtype::f16, Dtype::f32, Dtype::f64, Dtype::c64}) {
      for (const Device device : kit::devices())
        all.push_back({std::string(entry.def.name), dtype, device});
    }
  }
  return all;
}

const std::vector<Dims> kShapes = {{6, 33}, {8, 8}, {4, 64}, {5, 8, 8}, {2, 8, 8, 3}};

StageSpec stage(Op op, std::vector<std::string> inputs, std::vector<std::string> outputs) {
  return {.op = std::move(op),
          .inputs = std::move(inputs),
          .outputs = std::move(outputs),
          .device = {},
          .position = {}};
}

/// clip -> the op -> abs, over one batch of `shape`; nothing where the op refuses it.
std::optional<Spec> chain(const Op& op, Dtype dtype, const Dims& shape, Device device) {
  const OpDef& def = op.entry().def;
  Spec spec;
  spec.device = device;
  spec.batch_size = shape[0];
  spec.num_threads = 2;
  spec.output = {"result"};
  std::vector<std::pair<std::string, Array>> columns;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < def.inputs.size(); ++i) {
    names.emplace_back(def.inputs[i]);
    const bool whole = is_integer(dtype);
    columns.emplace_back(names.back(),
                         kit::random(shape, dtype, 7 + i, whole ? 0 : -4, whole ? 100 : 4));
    if (!is_complex(dtype))
      spec.stages.push_back(
          stage(Op::with(find_op("clip"), Clip{.min = 1, .max = 60}), {names[i]}, {names[i]}));
  }
  spec.source = array_source(columns);
  spec.stages.push_back(stage(op, names, {"result"}));
  spec.stages.push_back(stage(Op::with(find_op("abs"), Abs{}), {"result"}, {"result"}));
  try {
    compile(std::make_shared<const Spec>(spec));
  } catch (const Error&) {
    return {};  // refused before any data is touched
  }
  return spec;
}

Array run(Spec spec, bool fuse, std::vector<std::size_t>* stages_of_steps) {
  spec.fuse = fuse;
  Program program(compile(std::make_shared<const Spec>(spec)));
  std::vector<std::int64_t> samples;
  for (std::int64_t i = 0; i < spec.batch_size; ++i)
    samples.push_back(i);
  program.read(samples);
  program.run();
  program.stream().synchronize();
  for (const PlanStep& step : program.plan().steps)
    stages_of_steps->push_back(step.stages.size());
  const Context context = kit::context(program.output("result").device());
  return kit::to_host(program.output("result"), context);
}

class FusionConformance : public testing::TestWithParam<Case> {};

TEST_P(FusionConformance, FusedAndUnfusedGiveTheSameAnswer) {
  const auto& [name, dtype, device] = GetParam();
  SKIP_WITHOUT(device);
  const Op op = parse_stage(find_op(name).def.example).op;
  for (const Dims& shape : kShapes) {
    const auto spec = chain(op, dtype, shape, device);
    if (!spec) continue;
    std::vector<std::size_t> fused_steps, plain_steps;
    const Array fused = run(*spec, true, &fused_steps), plain = run(*spec, false, &plain_steps);
    const auto where = fmt::format("{} {} {}", name, name_of(dtype), to_string(shape));
    EXPECT_LE(fused_steps.size(), plain_steps.size()) << where;
    for (const std::size_t stages : plain_steps)
      EXPECT_LE(stages, 1u) << where;
    const bool exact = is_integer(fused.dtype()) || fused.dtype() == Dtype::boolean ||
                       find_op(name).cpu == nullptr;
    if (exact) {
      EXPECT_TRUE(kit::same_bits(fused, plain)) << where;
      continue;
    }
    double scale = 0;
    for (const double value : kit::values(plain))
      scale = std::isfinite(value) ? std::max(scale, value) : scale;
    const double bound = 64 * kit::epsilon(fused.dtype());
    EXPECT_TRUE(kit::near(fused, kit::values(plain), bound, bound * scale)) << where;
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, FusionConformance, testing::ValuesIn(cases()), [](const auto& test) {
  return fmt::format("{}_{}_{}", test.param.op, name_of(test.param.dtype),
                     test.param.device.is_cuda() ? "cuda" : "cpu");
});

/// What a fused plan is of: the ops that can take neighbours in do.
TEST(FusionConformanceCoverage, PointwiseOpsAndFusingKernelOpsBecomeOneStep) {
  for (const OpEntry& entry : registry()) {
    const Op op = parse_stage(entry.def.example).op;
    for (const DeviceKind kind : {DeviceKind::cpu, DeviceKind::cuda}) {
      for (const Dims& shape : kShapes) {
        const auto spec = chain(op, Dtype::f32, shape, Device{kind, 0});
        if (!spec || (kind == DeviceKind::cuda && entry.cpu != nullptr && entry.cuda == nullptr))
          continue;
        const auto plan = compile(std::make_shared<const Spec>(*spec));
        const PlanStep& last = plan->steps.back();
        const bool kernel =
            std::any_of(plan->steps.begin(), plan->steps.end(),
                        [](const PlanStep& step) { return step.kind == PlanStep::Kind::kernel; });
        if (!kernel && plan->steps.size() == 1u) {
          EXPECT_EQ(last.stages.size(), spec->stages.size()) << entry.def.name;
        }
        if (!kernel || entry.def.fuses == nullptr) continue;
        const PlanStep& step =
            *std::find_if(plan->steps.begin(), plan->steps.end(),
                          [](const PlanStep& s) { return s.kind == PlanStep::Kind::kernel; });
        const Fusion fuses = entry.def.fuses(op.raw_settings(), step.problem, kind);
        EXPECT_EQ(!step.problem.prologue.empty(), fuses.prologue)
            << entry.def.name << to_string(shape);
        EXPECT_EQ(step.problem.epilogue.valid(), fuses.epilogue)
            << entry.def.name << to_string(shape);
      }
    }
  }
}

}  // namespace
}  // namespace forebay
