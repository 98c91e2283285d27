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

std::vector<std::string> labels(const Plan& plan) {
  std::vector<std::string> result;
  for (const PlanStep& step : plan.steps)
    result.push_back(step.label);
  return result;
}
using Labels = std::vector<std::string>;

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

TEST(Plan, SaysWhichSamplesMakeAnEpoch) {
  const auto epoch = [](const Spec& spec) {
    const std::string text = to_string(*plan_of(spec));
    const std::size_t begin = text.find("\nepoch\n") + 7;
    return text.substr(begin, text.find("\nsteps\n") - begin);
  };
  Spec spec = counting_spec(Device::cpu());
  EXPECT_EQ(epoch(spec),
            "  20 samples as the source has them\n  4 batches of 6, the last one of 2\n");
  spec.shuffle = ShuffleMode::full;
  spec.split = {.part = SplitPart::train, .validation = 0.1, .by = {}, .seed = 0};
  spec.last_batch_policy = LastBatchPolicy::drop;
  spec.shard = {1, 2};
  EXPECT_EQ(epoch(spec),
            "  18 samples shuffled, of the train part, 0.9\n"
            "  shard 1 of 2, each with 1 batches of 6; 6 samples are dropped\n");
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
  EXPECT_EQ(
      plan->notes,
      (Labels{"`x` is written to memory before stage 2 (same): same takes no pointwise work in"}));
  // The first and the third value are never alive together.
  const MemoryMap map = map_memory(*plan);
  EXPECT_EQ(map.shared_host, 2 * aligned(6 * 3 * 4));
}

TEST(Plan, AFieldWithSeveralReadersIsComputedOnce) {
  Spec spec = counting_spec(Device::cpu());
  spec.stages = {clip(0), with(clip(1), {"x"}, {"a"}), with(clip(2), {"x"}, {"b"})};
  spec.output = {"a", "b"};
  const auto plan = plan_of(spec);
  EXPECT_EQ(labels(*plan), Labels{"clip + clip + clip"});  // which compute the first once
  EXPECT_EQ(plan->steps[0].outputs.size(), 2u);
  EXPECT_EQ(plan->notes, Labels{"column `label` is read, but no stage and no output uses it"});
  spec.stages.insert(spec.stages.begin() + 1, with(stage(same_op()), {"x"}, {"c"}));
  spec.output = {"a", "c"};  // a kernel op wants it in memory
  EXPECT_EQ(plan_of(spec)->notes,
            (Labels{"column `label` is read, but no stage and no output uses it",
                    "stage 4 (clip) is left out: nothing uses what it writes",
                    "`x` of stage 1 (clip) is written to memory: it is read 2 times"}));
  spec.stages.erase(spec.stages.begin() + 1);
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
  EXPECT_EQ(labels(*plan), Labels{"clip + clip"});
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

// The text that `forebay plan` prints.

TEST(PlanText, OnTheCpu) {
  Spec spec = counting_spec(Device::cpu());
  spec.stages = {clip(5), stage(same_op())};
  spec.output = {"x"};
  EXPECT_EQ(to_string(*plan_of(spec)), R"(pipeline test: batches of 6 on cpu, 2 ready ahead

source counting, 20 samples
  x f32 (6, 3), 72 B
  label i64 (6,), 48 B

epoch
  20 samples as the source has them
  4 batches of 6, the last one of 2

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
  - `x` is written to memory before stage 2 (same): same takes no pointwise work in
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

epoch
  20 samples as the source has them
  4 batches of 6, the last one of 2

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

epoch
  20 samples as the source has them
  4 batches of 6, the last one of 2

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
