// Every mistake that a plan refuses, with its text.

#include <forebay/ops/reshape/reshape.h>

#include "fixture_test.h"

namespace forebay::test {
namespace {

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
  spec.stages = {clip(0)};  // what reads such columns is not checked
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

}  // namespace
}  // namespace forebay::test
