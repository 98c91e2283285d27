// What stages read and write whose settings name their fields: those of `expr`.

#include <forebay/ops/expr_op/expr_op.h>
#include <forebay/pipeline/builder.h>

#include "fixture_test.h"

namespace forebay::test {
namespace {

class ExprFields : public PipelineTest {
 protected:
  /// `field` of the first batch, samples 0 to 5.
  std::vector<std::int64_t> first(const std::vector<StageSpec>& stages,
                                  const std::string& field) const {
    Spec spec = counting_spec(device());
    spec.stages = stages;
    Pipeline pipeline = Pipeline::from_spec(spec);
    return integers((*pipeline.next())[field]);
  }
};

StageSpec expr(const std::string& text) { return stage("expr", ExprOp{text}); }
/// `n`: the labels as i32.
StageSpec narrow() { return with(stage("cast", Cast{.dtype = Dtype::i32}), {"label"}, {"n"}); }
using Values = std::vector<std::int64_t>;

DEVICE_TEST(ExprFields, AreTheOnesThatItNames) {
  EXPECT_EQ(first({expr("label * 2 + 1")}, "label"), (Values{1, 3, 5, 7, 9, 11}));
  EXPECT_EQ(first({with(stage("clip", Clip{.max = 1}), {"x"}, {"c"}),
                   with(expr("i32(label)"), {}, {"n"}), with(expr("n + label"), {}, {"sum"})},
                  "sum"),
            (Values{0, 2, 4, 6, 8, 10}));
}

DEVICE_TEST(ExprFields, XIsTheFieldBeforeItUnlessOneIsCalledThat) {
  EXPECT_EQ(first({narrow(), with(expr("x + 1"), {}, {"m"})}, "m").size(), 18u);  // the column x
  EXPECT_EQ(first({narrow(), with(expr("x * 10"), {"n"}, {"m"})}, "m"),
            (Values{0, 10, 20, 30, 40, 50}));
  EXPECT_EQ(first({narrow(), with(expr("x * 10 + label"), {"n", "label"}, {"m"})}, "m"),
            (Values{0, 11, 22, 33, 44, 55}));
}

DEVICE_TEST(ExprFields, RebindsTheFieldBeforeItOrTheOnlyOneThatItReads) {
  const auto written = [&](const std::vector<StageSpec>& stages) {
    Spec spec = counting_spec(device());
    spec.stages = stages;
    const auto plan = plan_of(spec);
    std::string names;
    for (const auto& output : plan->outputs)
      names += (names.empty() ? "" : " ") + output.name;
    return names;
  };
  EXPECT_EQ(written({expr("sqrt(x)")}), "x label");
  EXPECT_EQ(written({narrow(), expr("n + label")}), "x label n");
  EXPECT_EQ(first({narrow(), expr("label + n")}, "n"), (Values{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(first({narrow(), expr("label + n")}, "label"), (Values{0, 1, 2, 3, 4, 5}));
}

DEVICE_TEST(ExprFields, ComeFromTheBuilderAndFuse) {
  const auto source = std::make_shared<CountingSource>(12, 3);
  auto builder = Pipeline::build();
  builder.source(source)
      .batch_size(6)
      .device(device())
      .clip({.max = 30})
      .expr({.expr = "x / 10"})
      .expr({.expr = "floor(x) * 2"});
  int kernels = 0;
  const auto plan = plan_of(builder.spec());
  for (const PlanStep& step : plan->steps)
    kernels += step.kind == PlanStep::Kind::pointwise;
  EXPECT_EQ(kernels, 1);
  Pipeline pipeline = builder.create();
  const Array x = (*pipeline.next())["x"];
  EXPECT_EQ(integers(x), (Values{0, 0, 0, 2, 2, 2, 4, 4, 4, 6, 6, 6, 6, 6, 6, 6, 6, 6}));
}

TEST(ExprFieldErrors, SayWhatToDo) {
  const auto refused = [](const std::vector<StageSpec>& stages) {
    Spec spec = counting_spec(Device::cpu());
    spec.stages = stages;
    spec.stages.back().position = {"train.yaml", 14, 5};
    return kit::caught([&] { plan_of(spec); }).text;
  };
  EXPECT_EQ(
      refused({expr("x * lable")}),
      "train.yaml:14:5: stage 1 (expr): it reads `lable`, but no such field exists here; there are "
      "`x`, `label`. Did you mean `label`?");
  EXPECT_EQ(
      refused({with(expr("x * label"), {"x"}, {})}),
      "train.yaml:14:5: stage 1 (expr): it reads `label`, which is not in `inputs` (`x`); add it "
      "there, or leave `inputs` out.");
  EXPECT_EQ(
      refused({with(expr("x * 2"), {"x", "label"}, {})}),
      "train.yaml:14:5: stage 1 (expr): `inputs` names `label`, which it does not read; it reads "
      "`x`.");
  EXPECT_EQ(refused({narrow(), expr("x[0]")}),
            "train.yaml:14:5: stage 2 (expr): column 2: expected an operator, found `[`.");
  EXPECT_EQ(refused({narrow(), expr("x + label")}),
            "train.yaml:14:5: stage 2 (expr): it reads `x`, `label`, none of which is `n`, which "
            "the stage "
            "before it wrote; name in `outputs` what it writes.");
  EXPECT_EQ(refused({expr("x + label")}),
            "train.yaml:14:5: stage 1 (expr): column 3: `+` of f32 (6, 3) and i64 (6,): shapes (6, "
            "3) and "
            "(6,) do not broadcast: axis -1 is 3 and 6; extents must be equal or 1.");
}

}  // namespace
}  // namespace forebay::test
