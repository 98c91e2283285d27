// A log-mel spectrogram as a declared chain: fused and unfused plans agree, and no frame is ever
// written to memory.

#include <forebay/ops.h>
#include <forebay/pipeline/builder.h>
#include <forebay/pipeline/program.h>

#include "fixture_test.h"

namespace forebay::test {
namespace {

class LogMel : public PipelineTest {};

DEVICE_TEST(LogMel, FusesFromTheFramesOnAndAgreesWithTheStagesOneByOne) {
  const Array signal = kit::random({4, 1600}, Dtype::f32, 1, -1, 1);
  auto builder = Pipeline::build();
  builder.source(array_source({{"x", signal}}))
      .batch_size(4)
      .device(device())
      .frame({.length = 400, .hop = 160})
      .window()
      .rfft()
      .expr({.expr = "norm(x)"})
      .mel({.sample_rate = 16000, .n_mels = 20})
      .expr({.expr = "log(x + 1e-6)"});
  Spec spec = builder.spec();
  const auto run = [&](bool fuse) {
    spec.fuse = fuse;
    auto program = std::make_unique<Program>(plan_of(spec));
    program->read(std::vector<std::int64_t>{0, 1, 2, 3});
    program->run();
    program->stream().synchronize();
    return program;
  };
  const auto fused = run(true), plain = run(false);
  const auto host = [&](const Program& program) {
    return kit::to_host(program.output("x"), kit::context(device()));
  };
  ASSERT_EQ(host(*fused).shape(), (Dims{4, 8, 20}));
  EXPECT_TRUE(kit::near(host(*fused), kit::values(host(*plain)), 1e-5, 1e-5));

  for (const PlanValue& value : fused->plan().values)
    EXPECT_NE(value.spec.shape, (Dims{4, 8, 400})) << value.name;
  const std::size_t copies = device().is_cuda() ? 1 : 0;
  EXPECT_EQ(fused->plan().steps.size(), copies + 2);  // frame to norm; mel and log
}

}  // namespace
}  // namespace forebay::test
