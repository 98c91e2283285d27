// What a plan says and refuses: order, fusion, memory, notes, and every mistake at once.

#include <forebay/pipeline/plan.h>

#include <forebay/ops/histogram/histogram.h>
#include <forebay/ops/normalize/normalize.h>
#include <forebay/ops/permute/permute.h>
#include <forebay/ops/reshape/reshape.h>
#include <forebay/pipeline/memory_map.h>

#include "fixture_test.h"

namespace forebay::test {
namespace {

using Kind = PlanStep::Kind;

std::shared_ptr<const Plan> plan_of(Spec spec, std::int64_t batch_size = 0) {
  return compile(std::make_shared<const Spec>(std::move(spec)), batch_size);
}

std::vector<std::string> labels(const Plan& plan) {
  std::vector<std::string> result;
  for (const PlanStep& step : plan.steps)
    result.push_back(step.label);
  return result;
}
using Labels = std::vector<std::string>;

StageSpec with(StageSpec stage, std::vector<std::string> inputs, std::vector<std::string> outputs) {
  stage.inputs = std::move(inputs);
  stage.outputs = std::move(outputs);
  return stage;
}

StageSpec clip(double low) { return stage("clip", Clip{.min = low}); }

TEST(Plan, WithoutStagesColumnsPassThrough) {
  const auto plan = plan_of(counting_spec(Device::cpu()));
  EXPECT_EQ(plan->steps.size(), 0u);
  ASSERT_EQ(plan->outputs.size(), 2u);
  EXPECT_EQ(plan->values[static_cast<std::size_t>(plan->outputs[0].value)].kind,
            PlanValue::Kind::column);
  EXPECT_EQ(plan->copied_bytes(), 0u);
  EXPECT_EQ(plan->host_bytes_per_slot(), 0u);
  EXPECT_EQ(plan->device_bytes_shared(), 0u);
  EXPECT_EQ(plan->slots(), 4);
}

TEST(Plan, OnAGpuAllColumnsTravelInOneStep) {
  const auto plan = plan_of(counting_spec(Device::cuda()));
  EXPECT_EQ(labels(*plan), Labels{"copy x, label to cuda:0"});
  EXPECT_EQ(plan->steps[0].kind, Kind::load);
  EXPECT_EQ(plan->copied_bytes(), 6u * (12 + 8));
}

TEST(Plan, RunsOfPointwiseStagesAreOneStep) {
  Spec spec = counting_spec(Device::cpu());
  spec.stages = {clip(0), stage("cast", Cast{.dtype = Dtype::f16}),
                 stage("permute", Permute{.axes = {1, 0}}), clip(1)};
  const auto plan = plan_of(spec);
  EXPECT_EQ(labels(*plan), Labels{"clip + cast + permute + clip"});
  EXPECT_EQ(plan->steps[0].stages, (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(plan->values[static_cast<std::size_t>(plan->outputs[0].value)].spec,
            (ArraySpec{Dtype::f16, {3, 6}}));
  EXPECT_EQ(plan->bytes_moved(plan->steps[0]), 6u * 3 * (4 + 2));
}

TEST(Plan, KernelOpsReadMemory) {
  Spec spec = counting_spec(Device::cpu());
  spec.stages = {clip(0), stage(same_op()), stage(same_op()), clip(1)};
  const auto plan = plan_of(spec);
  EXPECT_EQ(labels(*plan), (Labels{"clip", "same", "same", "clip"}));
  EXPECT_EQ(plan->notes,
            (Labels{"`x` is written to memory before stage 2 (same): a kernel op reads memory"}));
  // The first and the third value are never alive together.
  const MemoryMap map = map_memory(*plan);
  EXPECT_EQ(map.shared_host, 2 * aligned(6 * 3 * 4));
}

TEST(Plan, AFieldWithSeveralReadersIsComputedOnce) {
  Spec spec = counting_spec(Device::cpu());
  spec.stages = {clip(0), with(clip(1), {"x"}, {"a"}), with(clip(2), {"x"}, {"b"})};
  spec.output = {"a", "b"};
  const auto plan = plan_of(spec);
  EXPECT_EQ(labels(*plan), (Labels{"clip", "clip", "clip"}));
  EXPECT_EQ(plan->notes,
            (Labels{"column `label` is read, but no stage and no output uses it",
                    "`x` of stage 1 (clip) is written to memory: it is read 2 times"}));
  spec.output = {"a"};  // now nobody needs the third stage, and the first two are one kernel
  const auto fused = plan_of(spec);
  EXPECT_EQ(labels(*fused), Labels{"clip + clip"});
  EXPECT_EQ(fused->notes, (Labels{"column `label` is read, but no stage and no output uses it",
                                  "stage 3 (clip) is left out: nothing uses what it writes"}));
}

TEST(Plan, AnOutputThatIsReadFurtherIsComputedOnce) {
  Spec spec = counting_spec(Device::cpu());
  spec.stages = {clip(0), with(clip(1), {"x"}, {"a"})};
  const auto plan = plan_of(spec);
  EXPECT_EQ(labels(*plan), (Labels{"clip", "clip"}));
  ASSERT_EQ(plan->outputs.size(), 3u);
  EXPECT_EQ(plan->outputs[2].name, "a");
}

TEST(Plan, ColumnsAreSharedByTheirReaders) {
  Spec spec = counting_spec(Device::cuda());
  spec.stages = {with(clip(0), {"x"}, {"a"}), with(stage(same_op()), {"x"}, {"b"})};
  const auto plan = plan_of(spec);
  EXPECT_EQ(labels(*plan), (Labels{"copy x, label to cuda:0", "same", "clip"}));
  EXPECT_EQ(plan->copied_bytes(), 6u * (12 + 8));
}

TEST(Plan, ReshapeOfMemoryIsAView) {
  Spec spec = counting_spec(Device::cpu());
  spec.stages = {stage("reshape", Reshape{.shape = {-1, 3, 1}}), stage(same_op())};
  const auto plan = plan_of(spec);
  EXPECT_EQ(labels(*plan), Labels{"same"});
  const PlanValue& view = plan->values[static_cast<std::size_t>(plan->steps[0].inputs[0])];
  EXPECT_EQ(view.kind, PlanValue::Kind::view);
  EXPECT_EQ(view.base, 0);
  EXPECT_EQ(view.spec.shape, (Dims{6, 3, 1}));
}

TEST(Plan, ReshapeOfAPermutedArrayIsWrittenFirst) {
  Spec spec = counting_spec(Device::cpu());
  spec.stages = {stage("permute", Permute{.axes = {1, 0}}),
                 stage("reshape", Reshape{.shape = {9, 2}}), clip(0)};
  spec.output = {"x"};
  spec.last_batch_policy = LastBatchPolicy::drop;
  const auto plan = plan_of(spec);
  EXPECT_EQ(labels(*plan), (Labels{"permute", "reshape + clip"}));
  EXPECT_EQ(
      plan->notes,
      (Labels{"column `label` is read, but no stage and no output uses it",
              "`x` is written to memory before stage 2 (reshape): its new shape is no index map "
              "of what is there"}));
}

TEST(Plan, StagesOnTheCpuGetCopies) {
  Spec spec = counting_spec(Device::cuda());
  spec.stages = {clip(0), stage(cpu_only_op()), clip(1)};
  spec.stages[1].device = Device::cpu();
  const auto plan = plan_of(spec);
  EXPECT_EQ(labels(*plan), (Labels{"copy x, label to cuda:0", "clip", "copy x to cpu", "cpu_only",
                                   "copy x to cuda:0", "clip"}));
  EXPECT_TRUE(plan->has_steps_on(DeviceKind::cpu));
  // A column that a stage on the CPU reads does not travel.
  spec.stages = {stage(cpu_only_op())};
  spec.stages[0].device = Device::cpu();
  EXPECT_EQ(labels(*plan_of(spec)),
            (Labels{"copy label to cuda:0", "cpu_only", "copy x to cuda:0"}));
}

TEST(Plan, OutputsThatNobodyNeedsAreNotWritten) {
  Spec spec = counting_spec(Device::cpu());
  spec.stages = {with(stage(probe_op()), {}, {"ids", "position"})};
  spec.output = {"position"};
  const auto plan = plan_of(spec);
  ASSERT_EQ(plan->steps.size(), 1u);
  EXPECT_EQ(plan->steps[0].outputs[0], -1);
  EXPECT_EQ(plan->outputs[0].value, plan->steps[0].outputs[1]);
}

TEST(Plan, SaysWhatMixesSamples) {
  Spec spec = counting_spec(Device::cpu());
  spec.stages = {stage("histogram", Histogram{.bins = 4, .range = Reals{0, 1}})};
  spec.stages[0].outputs = {"hist"};
  EXPECT_EQ(plan_of(spec)->notes, Labels{"stage 1 (histogram) mixes samples: its result depends on "
                                         "batch_size and on which samples meet in a batch"});
}

/// No two values that live in the same block at the same time overlap, in any of the plans above.
TEST(MemoryMap, KeepsValuesApart) {
  for (const Device device : {Device::cpu(), Device::cuda()}) {
    Spec spec = counting_spec(device);
    spec.stages = {clip(0),
                   stage(same_op()),
                   with(stage(same_op()), {"x"}, {"a"}),
                   with(stage(same_op()), {"x"}, {"b"}),
                   with(stage(cpu_only_op()), {"b"}, {"c"}),
                   with(stage(same_op()), {"a"}, {"d"}),
                   with(clip(3), {"c"}, {"c"})};
    spec.stages[4].device = Device::cpu();
    spec.output = {"c", "d", "label"};
    const auto plan = plan_of(spec);
    const MemoryMap map = map_memory(*plan);
    std::vector<std::pair<int, int>> lives(plan->values.size(), {1000, -1});
    for (int i = 0; i < static_cast<int>(plan->steps.size()); ++i) {
      for (const auto* numbers : {&plan->steps[static_cast<std::size_t>(i)].inputs,
                                  &plan->steps[static_cast<std::size_t>(i)].outputs}) {
        for (const int value : *numbers) {
          auto& [first, last] = lives[static_cast<std::size_t>(value)];
          first = std::min(first, i);
          last = std::max(last, i);
        }
      }
    }
    for (std::size_t a = 0; a < lives.size(); ++a) {
      const auto end_of = [&](std::size_t v) {
        return map.places[v].offset + bytes_of(plan->values[v].spec);
      };
      EXPECT_EQ(map.places[a].offset % MemoryMap::kAlignment, 0u);
      const auto block = map.places[a].block;
      EXPECT_LE(end_of(a), block == MemoryMap::Block::slot_host     ? map.slot_host
                           : block == MemoryMap::Block::slot_device ? map.slot_device
                           : block == MemoryMap::Block::shared_host ? map.shared_host
                                                                    : map.shared_device);
      for (std::size_t b = 0; b < a; ++b) {
        if (map.places[a].block != map.places[b].block) continue;
        const bool shared =
            block == MemoryMap::Block::shared_host || block == MemoryMap::Block::shared_device;
        const bool together =
            !shared || (lives[a].first <= lives[b].second && lives[b].first <= lives[a].second);
        if (!together) continue;
        EXPECT_TRUE(end_of(a) <= map.places[b].offset || end_of(b) <= map.places[a].offset)
            << a << " and " << b;
      }
    }
    EXPECT_EQ(map.travelling > 0, device.is_cuda());
  }
}

// Every mistake in one go, each with its text.

Position at(int line, int column) { return {"train.yaml", line, column}; }

/// What the op itself says, without its name.
std::string said_by_clip() {
  return kit::caught([] {
           Op::with(find_op("clip"), Clip{}).infer(std::vector<ArraySpec>{{Dtype::f32, {1, 3}}});
         })
      .text.substr(6);
}

TEST(PlanErrors, AllMistakesAtOnceInTheOrderOfTheFile) {
  Spec spec = counting_spec(Device::cpu());
  spec.batch_size = 0;
  spec.batch_size_position = at(3, 13);
  spec.stages = {with(clip(0), {"imag"}, {"y"}), with(stage("clip", Clip{}), {"x"}, {}),
                 with(clip(0), {"y"}, {"z"}), stage("cast", Cast{.dtype = Dtype::f32})};
  for (int i = 0; i < 4; ++i)
    spec.stages[static_cast<std::size_t>(i)].position = at(10 + i, 5);
  spec.output = {"x", "lable", "z"};
  spec.output_position = at(20, 9);
  EXPECT_ERROR(plan_of(spec), invalid,
               "train.yaml:3:13: `batch_size` is 0; it must be at least 1.\n"
               "train.yaml:10:5: stage 1 (clip): it reads `imag`, but no such field exists here; "
               "there are `x`, `label`.\n"
               "train.yaml:11:5: stage 2 (clip): " +
                   said_by_clip() +
                   "\n"
                   "train.yaml:20:9: output: there is no field `lable`; there are `x`, `label`, "
                   "`y`, `z`. Did you mean `label`?");
}

TEST(PlanErrors, Settings) {
  Spec spec = counting_spec(Device::cpu());
  spec.position = at(1, 1);
  spec.batch_size = -2;
  spec.prefetch_queue_depth = 0;
  spec.max_held_batches = 0;
  spec.num_threads = -1;
  EXPECT_ERROR(plan_of(spec), invalid,
               "train.yaml:1:1: `batch_size` is -2; it must be at least 1.\n"
               "train.yaml:1:1: `num_threads` is -1; it must be at least 0.\n"
               "train.yaml:1:1: `prefetch_queue_depth` is 0; it must be at least 1.\n"
               "train.yaml:1:1: `max_held_batches` is 0; it must be at least 1.");
}

class BadSource final : public Source {
 public:
  std::int64_t size() const override { return -1; }
  const std::vector<Column>& columns() const override { return columns_; }
  void read(std::span<const std::int64_t>, std::span<const ArrayView>) const override {}
  std::string describe() const override { return "bad"; }
  std::vector<Column> columns_;
};

TEST(PlanErrors, Sources) {
  EXPECT_ERROR(plan_of(counting_spec(Device::cpu(), nullptr)), invalid,
               "the pipeline has no source; name where its samples come from.");
  auto source = std::make_shared<BadSource>();
  source->columns_ = {{"x", Dtype::f32, {1, 1, 1, 1, 1, 1, 1, 1}}, {"x", Dtype::u8, {3, -1}}};
  Spec spec = counting_spec(Device::cpu(), source);
  spec.source_position = at(4, 9);
  spec.last_batch_policy = LastBatchPolicy::drop;
  EXPECT_ERROR(plan_of(spec), invalid,
               "train.yaml:4:9: source bad: its size is -1; it must be at least 0.\n"
               "train.yaml:4:9: source bad: column `x` has samples of rank 8; it must be at most "
               "7, as the batch adds an axis.\n"
               "train.yaml:4:9: source bad: two columns are called `x`; give each its own name.\n"
               "train.yaml:4:9: source bad: column `x` has samples of shape (3, -1); extents must "
               "be at least 0.");
  source->columns_.clear();
  EXPECT_ERROR(plan_of(spec), invalid,
               "train.yaml:4:9: source bad: it has no columns; a source needs at least one.\n"
               "train.yaml:4:9: source bad: its size is -1; it must be at least 0.");
}

/// Inputs `a`, `b` and maybe `c`.
const OpEntry& three_inputs() {
  static const OpEntry entry{hook_def({.name = "three",
                                       .inputs = {"a", "b", "c"},
                                       .optional_inputs = 1,
                                       .infer = infer_hook<infer_same>}),
                             make_same, make_same};
  return entry;
}

TEST(PlanErrors, InputsAndOutputs) {
  Spec spec = counting_spec(Device::cpu());
  const auto fails = [&](StageSpec bad, const std::string& text) {
    spec.stages = {std::move(bad)};
    EXPECT_ERROR(plan_of(spec), invalid, text);
  };
  fails(stage(three_inputs()),
        "stage 1 (three): it reads 2 fields (`a`, `b`, `c`); name them in `inputs`.");
  fails(with(stage(three_inputs()), {"x"}, {}),
        "stage 1 (three): `inputs` names 1 fields; it reads 2 to 3 (`a`, `b`, `c`).");
  fails(with(clip(0), {"x", "label"}, {}),
        "stage 1 (clip): `inputs` names 2 fields; it reads 1 (`x`).");
  fails(with(stage(probe_op()), {}, {"a", "b", "c"}),
        "stage 1 (probe): `outputs` names 3 fields; it writes 2 (`ids`, `position`).");
  fails(with(stage(probe_op()), {}, {"a", "a"}),
        "stage 1 (probe): `outputs` names `a` twice; give each its own name.");
  fails(with(clip(0), {"labels"}, {}),
        "stage 1 (clip): it reads `labels`, but no such field exists here; there are `x`, `label`. "
        "Did you mean `label`?");
  spec.output = {"x", "x"};
  fails(clip(0), "output: `x` is named twice.");
  spec.output = {};
  spec.stages = {with(stage(three_inputs()), {"x", "x"}, {})};
  EXPECT_EQ(plan_of(spec)->steps[0].inputs, (std::vector<int>{0, 0}));
}

TEST(PlanErrors, Devices) {
  Spec spec = counting_spec(Device::cuda());
  spec.stages = {stage(cpu_only_op())};
  EXPECT_ERROR(plan_of(spec), invalid,
               "stage 1 (cpu_only): this build has no CUDA body of the op; place the stage with "
               "`device: cpu`.");
  spec.stages[0].device = Device::cuda(1);
  EXPECT_ERROR(plan_of(spec), invalid,
               "stage 1 (cpu_only): it is placed on cuda:1, but the pipeline runs on cuda:0; a "
               "stage runs there or on "
               "the cpu.");
  spec.device = Device::cpu();
  spec.stages[0].device = Device::cuda();
  EXPECT_ERROR(plan_of(spec), invalid,
               "stage 1 (cpu_only): it is placed on cuda:0, but the pipeline runs on cpu; a stage "
               "runs there or on the "
               "cpu.");
}

TEST(PlanErrors, AnOpThatContradictsItself) {
  static const OpEntry entry{[] {
    OpDef def = hook_def({.name = "liar", .infer = infer_hook<infer_same>});
    def.lower = [](const void*, std::span<const expr::Expr> inputs, Materialise&) {
      return std::vector<expr::Expr>{expr::cast(inputs[0], Dtype::f64)};
    };
    return def;
  }()};
  Spec spec = counting_spec(Device::cpu());
  spec.stages = {stage(entry)};
  EXPECT_ERROR(
      plan_of(spec), invalid,
      "stage 1 (liar): it infers f32 (6, 3) but lowers to f64 (6, 3); this is a defect of the op.");
}

TEST(PlanErrors, TheLastBatchMustFitToo) {
  Spec spec = counting_spec(Device::cpu());
  spec.stages = {stage("reshape", Reshape{.shape = {9, 2}})};
  const auto caught = kit::caught([&] { plan_of(spec); });
  EXPECT_EQ(caught.kind, ErrorKind::invalid);
  const std::string want =
      "the last batch of an epoch has 2 of 6 rows, for which the pipeline does not fit; set "
      "`last_batch_policy` to drop "
      "or fill:\nstage 1 (reshape): ";
  EXPECT_EQ(caught.text.substr(0, want.size()), want);
  spec.last_batch_policy = LastBatchPolicy::fill;
  EXPECT_EQ(plan_of(spec)->outputs.size(), 2u);
}

TEST(PlanErrors, ADeviceThatIsNotThereIsKnownBeforeTheFirstBatch) {
  Spec spec = counting_spec(Device::cuda(99));
  EXPECT_EQ(plan_of(spec)->device, Device::cuda(99));  // to look at a plan no GPU is needed
  const auto caught = kit::caught([&] { Pipeline::from_spec(spec); });
  EXPECT_EQ(caught.kind, ErrorKind::unsupported);
  EXPECT_NE(caught.text.find("cuda:99"), std::string::npos) << caught.text;
}

// The text that `forebay plan` prints.

TEST(PlanText, OnTheCpu) {
  Spec spec = counting_spec(Device::cpu());
  spec.stages = {clip(5), stage(same_op())};
  spec.output = {"x"};
  EXPECT_EQ(to_string(*plan_of(spec)), R"(pipeline test: batches of 6 on cpu, 2 ready ahead

source counting, 20 samples
  x f32 (6, 3), 72 B
  label i64 (6,), 48 B

steps
  1. stage 1: clip, on the cpu stream, 144 B moved
     x f32 (6, 3) -> x f32 (6, 3)
       for each of (6, 3):
         v0: f32 = source[0]
         v2: f32 = maximum(v0, 5.0)
         out[0] = v2
  2. stage 2: same, on the cpu stream, 144 B moved
     x f32 (6, 3) -> x f32 (6, 3)

output
  x f32 (6, 3) on cpu, 72 B

memory
  a batch: 120 B read, 288 B moved by steps, 72 B delivered
  a slot: 1.2 KiB on the host
  temporaries, shared by all slots: 256 B on cpu, and what ops need while they run
  in all: 5.2 KiB on the host in 4 slots, one more for each batch beyond the first that the consumer holds (at most 16)

notes
  - column `label` is read, but no stage and no output uses it
  - `x` is written to memory before stage 2 (same): a kernel op reads memory
)");
}

TEST(PlanText, OnAGpu) {
  Spec spec = counting_spec(Device::cuda());
  spec.stages = {clip(5), stage(cpu_only_op()), with(stage(probe_op()), {}, {"ids"})};
  spec.stages[1].device = Device::cpu();
  EXPECT_EQ(to_string(*plan_of(spec)), R"(pipeline test: batches of 6 on cuda:0, 2 ready ahead

source counting, 20 samples
  x f32 (6, 3), 72 B
  label i64 (6,), 48 B

steps
  1. copy x, label to cuda:0, on the copy stream, 240 B moved
     x f32 (6, 3), label i64 (6,) -> x f32 (6, 3), label i64 (6,)
  2. stage 1: clip, on the compute stream, 144 B moved
     x f32 (6, 3) -> x f32 (6, 3)
       for each of (6, 3):
         v0: f32 = source[0]
         v2: f32 = maximum(v0, 5.0)
         out[0] = v2
  3. copy x to cpu, on the compute stream, 144 B moved
     x f32 (6, 3) -> x f32 (6, 3)
  4. stage 2: cpu_only, on the cpu stream, 144 B moved
     x f32 (6, 3) -> x f32 (6, 3)
  5. copy x to cuda:0, on the compute stream, 144 B moved
     x f32 (6, 3) -> x f32 (6, 3)
  6. stage 3: probe, on the compute stream, 120 B moved
     x f32 (6, 3) -> ids i64 (6,)

output
  x f32 (6, 3) on cuda:0, 72 B
  label i64 (6,) on cuda:0, 48 B
  ids i64 (6,) on cuda:0, 48 B

memory
  a batch: 120 B read, 120 B copied to cuda:0, 936 B moved by steps, 168 B delivered
  a slot: 1.5 KiB on cuda:0 and 1.5 KiB of pinned host memory
  temporaries, shared by all slots: 256 B on cuda:0, and what ops need while they run
  in all: 6.2 KiB on cuda:0 and 6.0 KiB of pinned host memory in 4 slots, one more for each batch beyond the first that the consumer holds (at most 16)
)");
}

TEST(PlanText, WithoutSteps) {
  EXPECT_EQ(to_string(*plan_of(counting_spec(Device::cpu()))),
            R"(pipeline test: batches of 6 on cpu, 2 ready ahead

source counting, 20 samples
  x f32 (6, 3), 72 B
  label i64 (6,), 48 B

steps
  none: the columns are delivered as they are read

output
  x f32 (6, 3) on cpu, 72 B
  label i64 (6,) on cpu, 48 B

memory
  a batch: 120 B read, 0 B moved by steps, 120 B delivered
  a slot: 1.0 KiB on the host
  temporaries, shared by all slots: 0 B on cpu, and what ops need while they run
  in all: 4.0 KiB on the host in 4 slots, one more for each batch beyond the first that the consumer holds (at most 16)
)");
}

}  // namespace
}  // namespace forebay::test
