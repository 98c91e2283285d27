// What the planner fuses into what, and that fused and unfused plans give the same bits.

#include <forebay/ops/expr/tile.h>
#include <forebay/ops/histogram/histogram.h>
#include <forebay/ops/permute/permute.h>
#include <forebay/ops/scale/scale.h>
#include <forebay/pipeline/program.h>

#include "fixture_test.h"

namespace forebay::test {
namespace {

/// A kernel op that adds 1 to f32, and takes in what is before and behind it.
class PlusOneBody final : public Body {
 public:
  explicit PlusOneBody(const Problem& problem)
      : count_(count_of(problem.inputs[0].shape)),
        load_(problem.load(0)),
        store_(problem.store()) {}
  void run(std::span<const ArrayView> inputs, std::span<const ArrayView> outputs,
           const Launch&) override {
    constexpr std::int64_t kPiece = 5;
    for (std::int64_t begin = 0; begin < count_; begin += kPiece) {
      const std::int64_t n = std::min(kPiece, count_ - begin);
      float buffer[kPiece], result[kPiece];
      const auto* x = static_cast<const float*>(load_.load(inputs, begin, n, buffer));
      for (std::int64_t i = 0; i < n; ++i)
        result[i] = x[i] + 1;
      store_.store(result, inputs, begin, n, outputs[0].data);
    }
  }

 private:
  std::int64_t count_;
  expr::Tile load_, store_;
};

const OpEntry& plus_one_op() {
  static const OpEntry entry = [] {
    OpDef def = hook_def({.name = "plus_one", .infer = infer_hook<infer_same>});
    def.fuses = [](const void*, const Problem&, DeviceKind) {
      return Fusion{.prologue = true, .epilogue = true};
    };
    return OpEntry{def,
                   [](const Op&, const Problem& problem, const Context&) -> std::unique_ptr<Body> {
                     return std::make_unique<PlusOneBody>(problem);
                   }};
  }();
  return entry;
}

StageSpec plus_one() { return stage(plus_one_op()); }
StageSpec half() { return stage("scale", Scale{.factor = 0.5}); }
StageSpec to_f16() { return stage("cast", Cast{.dtype = Dtype::f16}); }

std::vector<std::string> labels(const Plan& plan) {
  std::vector<std::string> result;
  for (const PlanStep& step : plan.steps)
    result.push_back(step.label);
  return result;
}
using Labels = std::vector<std::string>;

/// Steps of the plan for `stages` on the CPU. Runs it, and the same with fusion off: every output
/// has the same bits.
Labels steps(std::vector<StageSpec> stages, std::vector<std::string> output) {
  Spec spec = counting_spec(Device::cpu());
  spec.last_batch_policy = LastBatchPolicy::drop;
  spec.stages = std::move(stages);
  spec.output = std::move(output);
  const auto run = [&](bool fuse) {
    spec.fuse = fuse;
    auto program = std::make_unique<Program>(plan_of(spec));
    program->read(std::vector<std::int64_t>{3, 1, 4, 15, 9, 2});
    program->run();
    program->stream().synchronize();
    return program;
  };
  const auto fused = run(true), plain = run(false);
  for (const std::string& name : spec.output)
    EXPECT_TRUE(kit::same_bits(fused->output(name), plain->output(name))) << name;
  std::size_t kernels = 0;
  for (const PlanStep& step : plain->plan().steps)
    kernels += step.stages.size() > 1 ? 1 : 0;
  EXPECT_EQ(kernels, 0u) << "a step of more than one stage with fusion off";
  return labels(fused->plan());
}

TEST(Fusion, NeighboursOfAKernelOpBecomePartOfIt) {
  EXPECT_EQ(steps({half(), clip(9), plus_one(), clip(12), to_f16()}, {"x"}),
            Labels{"scale + clip + plus_one + clip + cast"});
}

TEST(Fusion, IndexMapsArePartOfAPrologueButNotOfAnEpilogue) {
  const StageSpec turn = stage("permute", Permute{.axes = {1, 0}});
  EXPECT_EQ(steps({half(), turn, plus_one()}, {"x"}), Labels{"scale + permute + plus_one"});
  EXPECT_EQ(steps({plus_one(), half(), turn}, {"x"}), (Labels{"plus_one", "scale + permute"}));
}

TEST(Fusion, AResultThatIsReadTwiceStaysMemory) {
  EXPECT_EQ(steps({plus_one(), with(half(), {"x"}, {"a"})}, {"x", "a"}),
            (Labels{"plus_one", "scale"}));
  // Two index maps of one result are two readers, too.
  const StageSpec turn = with(stage("permute", Permute{.axes = {1, 0}}), {"x"}, {"t"});
  EXPECT_EQ(steps({plus_one(), turn, with(half(), {"t"}, {"a"}), with(clip(3), {"t"}, {"b"})},
                  {"a", "b"}),
            (Labels{"plus_one", "permute + scale + clip"}));
}

TEST(Fusion, BetweenTwoKernelOpsTheSmallerArrayIsWritten) {
  EXPECT_EQ(
      steps({plus_one(), to_f16(), stage("cast", Cast{.dtype = Dtype::f32}), plus_one()}, {"x"}),
      (Labels{"plus_one + cast + cast", "plus_one"}));
  // What makes it larger goes to the reader.
  Spec spec = counting_spec(Device::cpu());
  spec.stages = {plus_one(), to_f16(), stage("cast", Cast{.dtype = Dtype::f64}), stage(same_op())};
  EXPECT_EQ(labels(*plan_of(spec)), (Labels{"plus_one + cast + cast", "same"}));
}

TEST(Fusion, AFieldThatAKernelReadsTwiceIsOneArray) {
  const StageSpec counts =
      with(stage("histogram", Histogram{.bins = 4, .range = Reals{0, 60}}), {"x", "x"}, {"h"});
  EXPECT_EQ(steps({plus_one(), clip(3), counts}, {"h"}), (Labels{"plus_one + clip", "histogram"}));
}

TEST(Fusion, AnEpilogueMayReadWhatIsComputedLater) {
  EXPECT_EQ(steps({with(plus_one(), {"x"}, {"y"}), with(stage(same_op()), {"x"}, {"z"}),
                   with(stage("scale", Scale{.factor = 2}), {"y"}, {"y"})},
                  {"y", "z"}),
            (Labels{"same", "plus_one + scale"}));
}

TEST(Fusion, PointwiseStepsThatReadTheSameAreOne) {
  EXPECT_EQ(
      steps({with(half(), {"x"}, {"a"}), with(clip(9), {"x"}, {"b"}), with(clip(7), {"a"}, {"c"})},
            {"a", "b", "c"}),
      Labels{"scale + clip + clip"});
  // `x` of the first stage is read twice, but nobody needs it in memory.
  EXPECT_EQ(steps({half(), with(clip(4), {"x"}, {"a"}), with(clip(2), {"x"}, {"b"})}, {"a", "b"}),
            Labels{"scale + clip + clip"});
}

TEST(Fusion, PointwiseStepsOnBothSidesOfTheirReaderStayTwo) {
  EXPECT_EQ(steps({with(half(), {"x"}, {"a"}), with(stage(same_op()), {"a"}, {"b"}),
                   with(clip(7), {"b"}, {"c"})},
                  {"a", "b", "c"}),
            (Labels{"scale", "same", "clip"}));
}

TEST(Fusion, ThePlanShowsWhatIsFusedAndTheTimeOfItsBytes) {
  Spec spec = counting_spec(Device::cpu());
  spec.stages = {half(), plus_one(), to_f16()};
  spec.output = {"x"};
  spec.last_batch_policy = LastBatchPolicy::drop;
  const std::string text = to_string(*plan_of(spec), 1e6);
  EXPECT_NE(text.find(R"(
  1. stages 1, 2, 3: scale + plus_one + cast, on the cpu stream, 108 B moved, 0.1080 ms
     x f32 (6, 3) -> x f16 (6, 3)
       reads
         for each of (6, 3):
           v0: f32 = source[0]
           v2: f32 = v0 * 0.5
           out[0] = v2
       writes, of its result source[0]
         for each of (6, 3):
           v0: f32 = source[0]
           v1: f16 = cast(v0)
           out[0] = v1
  times: the bytes at 0 GB/s, the copy bandwidth measured on cpu just now
)"),
            std::string::npos)
      << text;
}

TEST(Fusion, BytesOfAnArrayThatIsReadInPart) {
  Spec spec = counting_spec(Device::cpu());
  spec.stages = {half()};
  const auto plan = plan_of(spec);
  PlanStep step = plan->steps[0];
  EXPECT_EQ(plan->bytes_moved(step), 2u * 6 * 3 * 4);
  step.program.shape = {2, 3};
  EXPECT_EQ(plan->bytes_moved(step), 2u * 3 * 4 + 6 * 3 * 4);
}

}  // namespace
}  // namespace forebay::test
