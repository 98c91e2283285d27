// A plan over buffers that stay: values, inputs written in place, replays, errors.

#include <forebay/pipeline/program.h>
#include "fixture_test.h"

namespace forebay::test {
namespace {

class ProgramTest : public PipelineTest {};

/// x of CountingSource, clipped from below, in a second field.
Spec clipping(Device device, double low) {
  Spec spec = counting_spec(device);
  spec.stages.push_back(with(clip(low), {}, {"clipped"}));
  return spec;
}

std::vector<std::int64_t> output(const Program& program, std::string_view name) {
  program.stream().synchronize();
  return integers(program.output(name));
}

DEVICE_TEST(ProgramTest, RunsTheStepsOnSamplesOfTheSource) {
  Program program(plan_of(clipping(device(), 30), 2));
  EXPECT_EQ(program.output("clipped").device(), device());
  for (const std::int64_t first : {2, 4, 3, 2}) {  // a GPU captures at the second run
    const std::int64_t samples[] = {first, 19};
    program.read(samples);
    program.run();
    const std::int64_t x = 10 * first;
    EXPECT_EQ(
        output(program, "clipped"),
        (std::vector<std::int64_t>{std::max<std::int64_t>(x, 30), std::max<std::int64_t>(x + 1, 30),
                                   std::max<std::int64_t>(x + 2, 30), 190, 191, 192}));
    EXPECT_EQ(output(program, "label"), (std::vector<std::int64_t>{first, 19}));
  }
}

DEVICE_TEST(ProgramTest, RunsOnWhatIsWrittenToItsInputs) {
  Program program(plan_of(clipping(device(), 3), 2));
  const Array x = Array::from<float>({2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6});
  copy(x.view(), program.input("x").view(), program.stream());
  program.run();
  EXPECT_EQ(output(program, "clipped"), (std::vector<std::int64_t>{3, 3, 3, 4, 5, 6}));
}

DEVICE_TEST(ProgramTest, ShowsStepsTheSampleIds) {
  Spec spec = counting_spec(device());
  spec.seed = 5;
  spec.stages.push_back(with(stage(probe_op()), {"x"}, {"ids", "position"}));
  Program program(plan_of(spec, 3));
  program.run();
  EXPECT_EQ(output(program, "ids"), (std::vector<std::int64_t>{0, 1, 2}));
  program.read(std::vector<std::int64_t>{7, 5, 9});
  program.run();
  EXPECT_EQ(output(program, "ids"), (std::vector<std::int64_t>{7, 5, 9}));
  EXPECT_EQ(output(program, "position"), (std::vector<std::int64_t>{0, 0, 5}));
}

DEVICE_TEST(ProgramTest, MemoryOutlivesTheProgram) {
  auto program = std::make_unique<Program>(plan_of(clipping(device(), 30), 2));
  program->read(std::vector<std::int64_t>{0, 3});
  program->run();
  const Array clipped = program->output("clipped");
  program.reset();
  EXPECT_EQ(integers(clipped), (std::vector<std::int64_t>{30, 30, 30, 30, 31, 32}));
}

DEVICE_TEST(ProgramTest, NamesWhatIsNotThere) {
  Program program(plan_of(clipping(device(), 0), 2));
  EXPECT_ERROR(program.input("clipped"), invalid,
               "the program has no column `clipped`; it has `x`, `label`.");
  EXPECT_ERROR(
      program.output("clip"), invalid,
      "the program has no output `clip`; it has `x`, `label`, `clipped`. Did you mean `clipped`?");
  EXPECT_ERROR(program.read(std::vector<std::int64_t>{1, 2, 3}), invalid,
               "the program of pipeline test takes 2 samples, but 3 were given.");
}

DEVICE_TEST(ProgramTest, FailsAsItsSteps) {
  Spec spec = counting_spec(device());
  spec.stages.push_back(stage(same_op(), [](const BatchInfo&) { throw std::runtime_error("no"); }));
  Program program(plan_of(spec));
  EXPECT_ERROR(
      {
        program.run();
        program.stream().synchronize();
      },
      device, "stage 1 (same), epoch 0, batch 0: no");
}

TEST(ProgramCudaTest, RefusesStagesOnBothDevices) {
  SKIP_WITHOUT(Device::cuda());
  Spec spec = clipping(Device::cuda(), 0);
  spec.stages[0].device = Device::cpu();
  EXPECT_ERROR(
      Program(plan_of(spec)), unsupported,
      "pipeline test has stages on the CPU and on a GPU, but a program runs on one device; "
      "leave out the `device` of its stages.");
}

TEST(ProgramCudaTest, NamesColumnsThatNoStepReads) {
  SKIP_WITHOUT(Device::cuda());
  Spec spec = clipping(Device::cuda(), 0);
  spec.output = {"clipped"};
  Program program(plan_of(spec));
  EXPECT_ERROR(program.input("label"), invalid,
               "no step reads the column `label`, so it is not on cuda:0.");
}

}  // namespace
}  // namespace forebay::test
