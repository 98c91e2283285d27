// Randomness independent of execution: the same samples become the same arrays, bit for bit,
// however the pipeline is run. tests/determinism_test.cpp has the long form.
#include <forebay/pipeline/determinism_test.h>

#include <set>

#include <forebay/ops/cast/cast.h>
#include <forebay/pipeline/config/config.h>

namespace forebay::test {
namespace {

class DeterminismTest : public PipelineTest {};

DEVICE_TEST(DeterminismTest, SamplesAreTheSameHoweverThePipelineRuns) {
  const Samples want = run(random_spec(Device::cpu()), {});
  ASSERT_EQ(want.size(), 46u);
  EXPECT_TRUE(same(run(random_spec(device()), {}), want)) << "on another device";
  for (const Dimension& dimension : dimensions()) {
    for (const Way& way : dimension)
      EXPECT_TRUE(same(run(random_spec(device()), way), want)) << way.name;
  }
}

DEVICE_TEST(DeterminismTest, EpochsSamplesAndStagesDiffer) {
  Spec spec = counting_spec(device());
  spec.stages = {with(stage("noise", Noise{}), {"x"}, {"first"}),
                 with(stage("noise", Noise{}), {"x"}, {"second"}),
                 with(stage("noise", Noise{.stream = 1}), {"x"}, {"second_again"})};
  spec.output = {"first", "second", "second_again"};
  std::set<std::string> all;
  const Samples samples = run(spec, {});
  for (const auto& [key, fields] : samples) {
    all.insert(fields.begin(), fields.end());
    EXPECT_EQ(fields[1], fields[2]) << "the second stage's stream is 1";
    EXPECT_NE(fields[0], fields[1]);
  }
  EXPECT_EQ(all.size(), samples.size() * 2);
  spec.seed = 1;
  EXPECT_NE(run(spec, {}), samples);
}

DEVICE_TEST(DeterminismTest, AnotherOpsStagesChangeNothing) {
  Spec spec = counting_spec(device());
  spec.stages = {stage("noise", Noise{})};
  spec.output = {"x"};
  const Samples want = run(spec, {});
  spec.stages.insert(spec.stages.begin(),
                     with(stage("dropout_mask", DropoutMask{}), {"x"}, {"mask"}));
  spec.stages[1].inputs = {"x"};
  EXPECT_TRUE(same(run(spec, {}), want));
}

DEVICE_TEST(DeterminismTest, OneStreamFlipsImagesAndTheirMasksAlike) {
  Spec spec = counting_spec(device());
  const RandomFlip flip{.axes = {1}, .stream = 5};
  spec.stages = {with(stage("random_flip", flip), {"x"}, {"a"}),
                 with(stage("cast", Cast{.dtype = Dtype::f64}), {"x"}, {"y"}),
                 with(stage("random_flip", flip), {"y"}, {"b"}),
                 with(stage("cast", Cast{.dtype = Dtype::f32}), {"b"}, {"b"})};
  spec.output = {"a", "b"};
  for (const auto& [key, fields] : run(spec, {}))
    EXPECT_EQ(fields[0], fields[1]);
}

/// The steps that random_spec becomes, up to `image`.
std::vector<std::string> steps_on(Device device) {
  Spec spec = random_spec(device);
  spec.output = {"image"};
  std::vector<std::string> labels;
  const auto plan = plan_of(spec);
  for (const PlanStep& step : plan->steps) {
    if (step.kind != PlanStep::Kind::load) labels.push_back(step.label);
  }
  return labels;
}
const std::vector<std::string> kFused = {"scale + noise + random_crop", "random_flip + noise + clip"};

TEST(RandomStages, FuseWithTheirNeighbours) { EXPECT_EQ(steps_on(Device::cpu()), kFused); }

TEST(RandomStages, FuseWithTheirNeighboursOnAGpu) {  // planning needs none
  if (find_op("random_crop").cuda == nullptr) GTEST_SKIP() << "built without CUDA";
  EXPECT_EQ(steps_on(Device::cuda()), kFused);
}

TEST(RandomStages, DoNotBecomeOneKernelForTheirSampleIdsAlone) {
  Spec spec =
      counting_spec(Device::cpu(), array_source({{"x", kit::random({9, 4}, Dtype::f32, 1)},
                                                 {"y", kit::random({9, 4}, Dtype::f32, 2)}}));
  spec.stages = {with(stage("noise", Noise{}), {"x"}, {"x"}),
                 with(stage("noise", Noise{}), {"y"}, {"y"})};
  EXPECT_EQ(plan_of(spec)->steps.size(), 2u);
}

TEST(RandomStages, NeedSamplesOnAxisZero) {
  Spec spec =
      counting_spec(Device::cpu(), array_source({{"x", kit::random({20, 3, 4}, Dtype::f32, 1)}}));
  spec.stages = {parse_stage("{op: permute, axes: [1, 0, 2]}"), stage("noise", Noise{})};
  spec.last_batch_policy = LastBatchPolicy::drop;
  EXPECT_ERROR(plan_of(spec), invalid,
               "stage 2 (noise): `x` has shape (3, 6, 4), but there are 6 samples; axis 0 of a "
               "random op's input runs over the samples.");
}

}  // namespace
}  // namespace forebay::test
