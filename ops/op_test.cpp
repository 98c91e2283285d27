// What every op gets from its definition: checked inputs and settings, one line of text; and the
// shared checks.
#include "kit/kit.h"

#include <sys/mman.h>

#include <forebay/ops/checks.h>
#include <forebay/ops/clip/clip.h>
#include <forebay/ops/visitors.h>

namespace forebay {
namespace {

enum class Mode : std::uint8_t { slow, fast };
std::span<const std::string_view> names_of(Mode) {
  static constexpr std::string_view kNames[] = {"slow", "fast"};
  return kNames;
}

struct Trial {
  double epsilon = 1e-6;
  std::int64_t bins = 10;
  Reals mean = 0.0;
  std::vector<std::int64_t> axes;
  std::optional<Number> limit;
  std::optional<double> quantile;
  Mode mode = Mode::slow;
  Dtype dtype = Dtype::f32;
  bool centre = true;
  std::string label;
  ConstantArray table;

  void fields(FieldVisitor& v) {
    v.on({.name = "epsilon", .doc = "", .min = 0}, epsilon);
    v.on({.name = "bins", .doc = "", .min = 1, .max = 65536}, bins);
    v.on({.name = "mean", .doc = "", .max = 5}, mean);
    v.on({.name = "axes", .doc = "", .min = -8, .max = 7}, axes);
    v.on({.name = "limit", .doc = "", .min = 0}, limit);
    v.on({.name = "quantile", .doc = "", .min = 0, .max = 1}, quantile);
    v.on({.name = "mode", .doc = ""}, mode);
    v.on({.name = "dtype", .doc = ""}, dtype);
    v.on({.name = "centre", .doc = ""}, centre);
    v.on({.name = "label",
          .doc = "",
          .problem = [](std::string_view text) -> std::string {
            return text.ends_with("!") ? "`label` is `b!`; no marks." : "";
          }},
         label);
    v.on({.name = "table", .doc = "", .required = true}, table);
  }
};

std::vector<ArraySpec> infer(const Trial&, std::span<const ArraySpec> inputs) {
  return {inputs[0]};
}

const OpEntry kTrial{
    define_op<Trial, infer>({.name = "trial", .inputs = {"x", "weights"}, .optional_inputs = 1}),
    nullptr, nullptr};
const ArraySpec kSpec{Dtype::f32, {3}};

Trial valid() {
  Trial trial;
  trial.table.path = "w.npy";
  return trial;
}

TEST(OpText, ShowsWhatDiffersFromTheDefaults) {
  EXPECT_EQ(to_string(Op::with(kTrial, Trial{})), "trial");
  Trial trial = valid();
  trial.epsilon = 0.5;
  trial.mean = {0.1, 0.2};
  trial.axes = {0, -1};
  trial.limit = 3;
  trial.mode = Mode::fast;
  trial.dtype = Dtype::bf16;
  trial.centre = false;
  EXPECT_EQ(to_string(Op::with(kTrial, trial)),
            "trial(epsilon=0.5, mean=[0.1, 0.2], axes=[0, -1], limit=3, mode=fast, dtype=bf16, "
            "centre=false, table=w.npy)");
  trial = {};
  trial.mean = 2.5;
  trial.table.array = kit::random({4, 5}, Dtype::f32, 1);
  EXPECT_EQ(to_string(Op::with(kTrial, trial)), "trial(mean=2.5, table=f32 (4, 5))");
  EXPECT_EQ(to_string(Op::with(find_op("clip"), Clip{.min = -3, .max = 3.5})),
            "clip(min=-3, max=3.5)");
}

/// Settings are shared by threads: one prints them for a state while another prepares a body.
TEST(OpSettings, AreNotWrittenByWhoReadsThem) {
  constexpr std::size_t kPage = 1 << 16;
  void* const page =
      mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  Trial* const trial = new (page) Trial(valid());
  trial->limit = 3;
  trial->mode = Mode::fast;
  ASSERT_EQ(mprotect(page, kPage, PROT_READ), 0);  // from here a write ends the process
  EXPECT_EQ(setting_texts(kTrial.def, trial).size(), 10U);
  EXPECT_TRUE(check_fields(kTrial.def, trial).empty());
  ASSERT_EQ(mprotect(page, kPage, PROT_READ | PROT_WRITE), 0);
  trial->~Trial();
  munmap(page, kPage);
}

TEST(OpSettings, AreBoundChecked) {
  const auto problem = [](const std::function<void(Trial&)>& change) {
    Trial trial = valid();
    change(trial);
    const auto problems = check_fields(kTrial.def, &trial);
    return problems.size() == 1 ? problems[0].text
                                : testing::PrintToString(problems.size()) + " problems";
  };
  EXPECT_EQ(problem([](Trial& t) { t.epsilon = -1; }), "`epsilon` is -1; it must be at least 0.");
  EXPECT_EQ(problem([](Trial& t) { t.epsilon = NAN; }), "`epsilon` is nan; it must be at least 0.");
  EXPECT_EQ(problem([](Trial& t) { t.bins = 0; }), "`bins` is 0; it must be between 1 and 65536.");
  EXPECT_EQ(problem([](Trial& t) { t.mean = {1, 7.5}; }), "`mean` is 7.5; it must be at most 5.");
  EXPECT_EQ(problem([](Trial& t) {
              t.axes = {0, 8};
            }),
            "`axes` is 8; it must be between -8 and 7.");
  EXPECT_EQ(problem([](Trial& t) { t.limit = -2; }), "`limit` is -2; it must be at least 0.");
  EXPECT_EQ(problem([](Trial& t) { t.quantile = 1.5; }),
            "`quantile` is 1.5; it must be between 0 and 1.");
  EXPECT_EQ(problem([](Trial& t) { t.table = {}; }), "`table` is missing.");
  EXPECT_EQ(problem([](Trial&) {}), "0 problems");
  EXPECT_EQ(problem([](Trial& t) { t.epsilon = t.bins = -1; }), "2 problems");

  Trial wrong = valid();
  wrong.epsilon = -1;
  EXPECT_ERROR(Op::with(kTrial, wrong).infer(std::span(&kSpec, 1)), invalid,
               "trial: `epsilon` is -1; it must be at least 0.");
}

TEST(OpInputs, AreCounted) {
  const Op op = Op::with(kTrial, valid());
  const std::vector<ArraySpec> three(3, kSpec);
  EXPECT_EQ(op.infer(std::span(three).first(1)).size(), 1U);
  EXPECT_EQ(op.infer(std::span(three).first(2)).size(), 1U);
  EXPECT_ERROR(op.infer({}), invalid, "trial: got 0 inputs; it takes 1 to 2 (`x`, `weights`).");
  EXPECT_ERROR(op.infer(three), invalid, "trial: got 3 inputs; it takes 1 to 2 (`x`, `weights`).");
  EXPECT_ERROR(Op::with(find_op("clip"), Clip{.min = 0}).infer(std::span(three).first(2)), invalid,
               "clip: got 2 inputs; it takes 1 (`x`).");
}

TEST(OpInputs, MayBeNamedBySettings) {
  OpDef def = define_op<Trial, infer>({.name = "trial", .inputs = {"x", "weights"}});
  def.names_inputs = [](const void* settings) {
    return std::vector<std::string>(2, static_cast<const Trial*>(settings)->label);
  };
  const OpEntry entry{def, nullptr, nullptr};
  Trial trial = valid();
  trial.label = "a";
  const Op op = Op::with(entry, trial);
  EXPECT_EQ(op.inputs(), (std::vector<std::string>{"a", "a"}));
  EXPECT_EQ(op.required_inputs(), 2U);
  EXPECT_ERROR(op.infer(std::span(&kSpec, 1)), invalid,
               "trial: got 1 input; it takes 2 (`a`, `a`).");
  trial.label = "b!";
  EXPECT_ERROR(Op::with(entry, trial).inputs(), invalid, "trial: `label` is `b!`; no marks.");
  EXPECT_EQ(Op::with(kTrial, valid()).inputs(), (std::vector<std::string>{"x", "weights"}));
  EXPECT_EQ(Op::with(kTrial, valid()).required_inputs(), 1U);
}

TEST(Checks, FindAxes) {
  EXPECT_EQ(axis_of("trial", -1, {3, 4}), 1);
  EXPECT_ERROR(axis_of("trial", 2, {3, 4}), invalid,
               "trial: `axis` is 2, but `x` has shape (3, 4); it must be from -2 to 1.");
  EXPECT_ERROR(axis_of("trial", 0, {}), invalid,
               "trial: `x` is a scalar, shape (); it has no axis.");
  EXPECT_EQ(axes_of("trial", {-1, 0}, {3, 4}), (std::vector<int>{1, 0}));
  EXPECT_ERROR(axes_of("trial", {}, {3, 4}), invalid,
               "trial: `axes` is empty; name at least one axis.");
  EXPECT_ERROR(axes_of("trial", {-3}, {3, 4}), invalid,
               "trial: `axes` has -3, but `x` has shape (3, 4); its axes are -2 to 1.");
  EXPECT_ERROR(axes_of("trial", {1, -1}, {3, 4}), invalid,
               "trial: `axes` names axis 1 twice; give each axis once.");
}

TEST(Checks, ListDtypesShortly) {
  EXPECT_EQ(to_string(kReals), "bool, integers, f16, bf16, f32, f64");
  EXPECT_EQ(to_string(kUnsigned | kComplex), "u8, u16, u32, u64, c64, c128");
  EXPECT_EQ(float_result("log", Dtype::u8, {}), Dtype::f32);
  EXPECT_EQ(float_result("log", Dtype::f16, {}), Dtype::f16);
  EXPECT_EQ(float_result("log", Dtype::u8, Dtype::f64), Dtype::f64);
}

TEST(Checks, CountAxesFromBothEnds) {
  for (const std::int64_t axis : {0, 1, 2}) {
    EXPECT_EQ(checked_axis("fft", "axis", axis, {2, 3, 4}), axis);
    EXPECT_EQ(checked_axis("fft", "axis", axis - 3, {2, 3, 4}), axis);
  }
  for (const std::int64_t axis : {-3, 2}) {
    EXPECT_ERROR(checked_axis("fft", "axes", axis, {4, 5}), invalid,
                 "fft: `axes` names axis " + std::to_string(axis) +
                     ", but `x` has shape (4, 5); its axes are -2 to 1.");
  }
  EXPECT_ERROR(checked_axis("argmax", "axis", -1, {}), invalid,
               "argmax: `axis` names axis -1, but `x` is a scalar, shape (); it must have at least "
               "one axis.");
}

}  // namespace
}  // namespace forebay
