#include <cmath>

#include <forebay/ops/op.h>
#include <forebay/pipeline/config/scalar.h>
#include <forebay/pipeline/config/settings.h>
#include <forebay/pipeline/source.h>

#include "kit/kit.h"

namespace forebay {
namespace {

enum class Colour { red, green, blue };
std::span<const std::string_view> names_of(Colour) {
  static constexpr std::string_view kNames[] = {"red", "green", "blue"};
  return kNames;
}

/// One setting of each type that there is.
struct Everything {
  bool flag = false;
  std::int64_t whole = 5;
  double real = 0.5;
  Number number = 7;
  Dtype dtype = Dtype::f32;
  std::string text = "none";
  std::vector<std::int64_t> axes = {1};
  Reals mean = 0.0;
  ConstantArray other;
  Colour colour = Colour::green;
  std::optional<Number> maybe;
  std::optional<Reals> maybe_mean;
  std::int64_t needed = 0;

  void fields(FieldVisitor& visitor) {
    visitor.on({.name = "flag", .doc = "A switch.", .alias = "toggle"}, flag);
    visitor.on({.name = "whole", .doc = "A count.", .min = 1, .max = 9}, whole);
    visitor.on({.name = "real", .doc = "A factor.", .min = 0}, real);
    visitor.on({.name = "number", .doc = "A bound.", .max = 100}, number);
    visitor.on({.name = "dtype", .doc = "A type."}, dtype);
    visitor.on({.name = "text", .doc = "A word."}, text);
    visitor.on({.name = "axes", .doc = "Axes."}, axes);
    visitor.on({.name = "mean", .doc = "Means.", .min = -10}, mean);
    visitor.on({.name = "other", .doc = "A matrix."}, other);
    visitor.on({.name = "colour", .doc = "A colour."}, colour);
    visitor.on({.name = "maybe", .doc = "Perhaps."}, maybe);
    visitor.on({.name = "maybe_mean", .doc = "Perhaps means."}, maybe_mean);
    visitor.on({.name = "needed", .doc = "Cannot be left out.", .required = true}, needed);
  }
};

std::vector<ArraySpec> infer(const Everything&, std::span<const ArraySpec> inputs) {
  return {inputs[0]};
}

OpDef everything_def() {
  return define_op<Everything, infer>({.name = "everything", .summary = "All."});
}

/// The settings that `yaml` gives, with `needed` set when the test does not speak of it.
Everything settings_of(const std::string& yaml, const std::string& folder = "") {
  const OpDef def = everything_def();
  config::Report report;
  const config::Node node = config::parse_yaml(yaml, "t.yaml");
  config::MapReader reader(node, config::setting_names(def), "stage 2 (everything): ", report);
  const auto settings = config::bind_settings(def, reader, folder);
  report.raise();
  return *static_cast<const Everything*>(settings.get());
}

std::string mistakes(const std::string& yaml) {
  return kit::caught([&] { settings_of(yaml); }).text;
}

TEST(Settings, KeepTheirDefaultsWhenLeftOut) {
  const Everything got = settings_of("{needed: 3}");
  EXPECT_EQ(got.needed, 3);
  EXPECT_FALSE(got.flag);
  EXPECT_EQ(got.whole, 5);
  EXPECT_EQ(got.number, Number(7));
  EXPECT_EQ(got.colour, Colour::green);
  EXPECT_EQ(got.axes, std::vector<std::int64_t>{1});
  EXPECT_FALSE(got.maybe);
  EXPECT_FALSE(got.maybe_mean);
}

TEST(Settings, TakeEveryType) {
  const std::string folder = kit::temporary_folder();
  const Array w = kit::random({2, 3}, Dtype::f32, 1);
  write_npy(folder + "/w.npy", w.view());
  const Everything got = settings_of(
      "{needed: 1, flag: true, whole: 0x09, real: 3, number: 2.0, dtype: float16, text: 12, axes: "
      "[0, -1],\n"
      " mean: [1, 2.5, .inf], other: w.npy, colour: blue, maybe: -.inf, maybe_mean: 4}",
      folder);
  EXPECT_TRUE(got.flag);
  EXPECT_EQ(got.whole, 9);
  EXPECT_EQ(got.real, 3.0);
  EXPECT_EQ(got.number, Number(2.0));
  EXPECT_EQ(got.dtype, Dtype::f16);
  EXPECT_EQ(got.text, "12");
  EXPECT_EQ(got.axes, (std::vector<std::int64_t>{0, -1}));
  EXPECT_EQ(got.mean.values, (std::vector<double>{1, 2.5, INFINITY}));
  EXPECT_EQ(got.other.path, "w.npy");
  EXPECT_TRUE(kit::same_bits(got.other.array, w));
  EXPECT_EQ(got.colour, Colour::blue);
  EXPECT_EQ(got.maybe, Number(-INFINITY));
  EXPECT_EQ(got.maybe_mean->values, std::vector<double>{4});
}

TEST(Settings, TakeAnOptionalWithoutAValueAsLeftOut) {
  EXPECT_FALSE(settings_of("{needed: 1, maybe: null, maybe_mean: ~}").maybe);
  EXPECT_EQ(mistakes("{needed: 1, whole: ~}"),
            "t.yaml:1:20: stage 2 (everything): `whole` is nothing; it must be an integer.");
}

TEST(Settings, TakeOneNumberAsAListOfOne) {
  EXPECT_EQ(settings_of("{needed: 1, axes: -2}").axes, std::vector<std::int64_t>{-2});
  EXPECT_EQ(settings_of("{needed: 1, mean: -2}").mean.values, std::vector<double>{-2});
  EXPECT_TRUE(settings_of("{needed: 1, axes: []}").axes.empty());
}

TEST(SettingsErrors, SayTheTypeThatIsWanted) {
  const auto expect = [](const std::string& key_and_value, const std::string& text) {
    const std::string key = key_and_value.substr(0, key_and_value.find(':'));
    EXPECT_EQ(mistakes("{needed: 1, " + key_and_value + "}"),
              "t.yaml:1:" + std::to_string(15 + key.size()) + ": stage 2 (everything): " + text);
  };
  expect("flag: yes", "`flag` is yes; it must be true or false.");
  expect("flag: 1", "`flag` is 1; it must be true or false.");
  expect("whole: 3.0", "`whole` is 3.0; it must be an integer.");
  expect("whole: \"3\"", "`whole` is \"3\"; it must be an integer.");
  expect("whole: [3]", "`whole` is a list; it must be an integer.");
  expect("whole: 9223372036854775808", "`whole` is 9223372036854775808; it must fit 64 bits.");
  expect("real: fast", "`real` is fast; it must be a number.");
  expect("real: inf", "`real` is inf; it must be a number.");
  expect("real: 1e999", "`real` is 1e999; it must fit a double.");
  expect("number: {a: 1}", "`number` is a map; it must be a number.");
  expect("number: 99999999999999999999",
         "`number` is 99999999999999999999; it must fit 64 bits, or be written with a point.");
  expect("dtype: f23",
         "`dtype` is f23; it must be bool, u8, u16, u32, u64, i8, i16, i32, i64, f16, bf16, f32, "
         "f64, c64 or c128.");
  expect("text: [a]", "`text` is a list; it must be text.");
  expect("axes: x", "`axes` is x; it must be an integer or a list of integers.");
  expect("mean: x", "`mean` is x; it must be a number or a list of numbers.");
  expect("other: [1, 2]", "`other` is a list; it must be the path of a .npy file.");
  expect("other: no.npy", "`other`: no.npy: cannot be opened: No such file or directory.");
  expect("colour: gren", "`colour` is gren; it must be red, green or blue.");
}

TEST(SettingsErrors, PointAtTheElementOfAList) {
  EXPECT_EQ(mistakes("{needed: 1, axes: [0, 1.5]}"),
            "t.yaml:1:23: stage 2 (everything): `axes[1]` is 1.5; it must be an integer.");
  EXPECT_EQ(mistakes("{needed: 1, mean: [x]}"),
            "t.yaml:1:20: stage 2 (everything): `mean[0]` is x; it must be a number.");
}

TEST(SettingsErrors, SayTheBounds) {
  EXPECT_EQ(mistakes("{needed: 1, whole: 0, real: -1, number: 101, mean: [0, -11]}"),
            "t.yaml:1:20: stage 2 (everything): `whole` is 0; it must be between 1 and 9.\n"
            "t.yaml:1:29: stage 2 (everything): `real` is -1; it must be at least 0.\n"
            "t.yaml:1:41: stage 2 (everything): `number` is 101; it must be at most 100.\n"
            "t.yaml:1:52: stage 2 (everything): `mean` is -11; it must be at least -10.");
}

TEST(SettingsErrors, SayWhichKeyIsMissingUnknownOrTwiceThere) {
  EXPECT_EQ(mistakes("{whole: 1}"),
            "t.yaml:1:1: stage 2 (everything): `needed` is missing; it must be given. Cannot be "
            "left out.");
  EXPECT_EQ(mistakes("{needed: 1, color: red}"),
            "t.yaml:1:13: stage 2 (everything): unknown key `color`; did you mean `colour`?");
  EXPECT_EQ(mistakes("{needed: 1, zzzzz: red}"),
            "t.yaml:1:13: stage 2 (everything): unknown key `zzzzz`; it must be flag, whole, real, "
            "number, dtype, text, "
            "axes, mean, other, colour, maybe, maybe_mean or needed.");
  EXPECT_EQ(
      mistakes("{needed: 1, flag: true, toggle: true}"),
      "t.yaml:1:25: stage 2 (everything): `flag` is there twice, under two names; keep `flag`.");
}

TEST(Scalar, KeepsIntegersExact) {
  const auto number = [](const std::string& text) {
    Number value;
    EXPECT_EQ(config::read(config::parse_yaml(text, "t"), value), "");
    return value;
  };
  EXPECT_EQ(number("9007199254740993"), Number(std::int64_t{9007199254740993}));
  EXPECT_EQ(number("18446744073709551615"), Number(UINT64_MAX));
  EXPECT_EQ(number("-9223372036854775808"), Number(INT64_MIN));
  EXPECT_EQ(number("+3"), Number(3));
  EXPECT_EQ(number("0xff"), Number(255));
  EXPECT_EQ(number("0o17"), Number(15));
  EXPECT_EQ(number("3.0"), Number(3.0));
  EXPECT_EQ(number("1e3"), Number(1000.0));
  EXPECT_EQ(number("-.5"), Number(-0.5));
  EXPECT_EQ(number("1."), Number(1.0));
  EXPECT_EQ(number("-.INF"), Number(-INFINITY));
  EXPECT_TRUE(std::isnan(number(".nan").f64()));
  EXPECT_FALSE(number(".NaN").is_integer());
}

TEST(Scalar, RefusesWhatLooksLikeANumber) {
  for (const char* text : {"1_000", "1e", "--1", "+-1", "0x", "0o8", "08f", "1.2.3", "infinity",
                           "nan", ".", "1 2", "'1'"}) {
    Number value;
    EXPECT_EQ(config::read(config::parse_yaml(text, "t"), value), "it must be a number") << text;
  }
}

}  // namespace
}  // namespace forebay
