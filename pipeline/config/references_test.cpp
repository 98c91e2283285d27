#include <fstream>

#include <forebay/ops/histogram/histogram.h>
#include <forebay/ops/normalize/normalize.h>
#include <forebay/pipeline/config/config.h>
#include <forebay/pipeline/fit.h>
#include <forebay/pipeline/pipeline.h>

#include "folder_test.h"

namespace forebay {
namespace {

/// A folder with statistics of `image` and of `a.b`, and stages that refer to them.
class References : public FolderTest {
 protected:
  void SetUp() override {
    std::ofstream(folder_ + "/stats.yaml") << "image:\n"
                                              "  mean: [0.5, 1, 2]\n"
                                              "  std: 0.25\n"
                                              "  count: 12\n"
                                              "  dtype: u8\n"
                                              "  percentiles: {1: -2.5, 99.5: 7}\n"
                                              "a.b: {mean: 3}\n";
    std::ofstream(folder_ + "/list.yaml") << "[1]\n";
  }
  StageSpec stage(const std::string& yaml) const { return parse_stage(yaml, folder_); }
  std::string mistakes(const std::string& yaml) const {
    return without_folder(kit::caught([&] { stage(yaml); }).text);
  }
};

TEST_F(References, AreNumbersAndListsOfThem) {
  const auto normalize = stage(
      "{op: normalize, mean: stats.yaml#image.mean, std: \"stats.yaml#image.std\", layout: NHWC}");
  EXPECT_EQ(normalize.op.settings<Normalize>().mean->values, (std::vector{0.5, 1.0, 2.0}));
  EXPECT_EQ(normalize.op.settings<Normalize>().std->values, (std::vector{0.25}));
  const auto histogram = stage(
      "{op: histogram, bins: stats.yaml#image.count, "
      "range: [stats.yaml#image.percentiles.1, stats.yaml#image.percentiles.99.5]}");
  EXPECT_EQ(histogram.op.settings<Histogram>().bins, 12);
  EXPECT_EQ(histogram.op.settings<Histogram>().range->values, (std::vector{-2.5, 7.0}));
  EXPECT_EQ(stage("{op: normalize, mean: stats.yaml#a.b.mean, std: 1}")
                .op.settings<Normalize>()
                .mean->values,
            std::vector{3.0});
}

TEST_F(References, SayWhatIsNotThere) {
  EXPECT_EQ(mistakes("{op: clip, min: stat.yaml#image.mean}"),
            "stage:1:17: stage 1 (clip): `min`: stat.yaml is not there; `forebay fit FILE -o "
            "stat.yaml` writes it.");
  EXPECT_EQ(mistakes("{op: clip, min: stats.yaml#imag.mean, max: stats.yaml#image.maen}"),
            "stage:1:17: stage 1 (clip): `min`: stats.yaml has no `imag.mean`; did you mean "
            "`image`?\n"
            "stage:1:44: stage 1 (clip): `max`: stats.yaml has no `image.maen`; did you mean "
            "`image.mean`?");
  EXPECT_EQ(mistakes("{op: clip, min: stats.yaml#image.percentiles.50}"),
            "stage:1:17: stage 1 (clip): `min`: stats.yaml has no `image.percentiles.50`; there "
            "are `1`, `99.5`.");
  EXPECT_EQ(mistakes("{op: clip, min: stats.yaml#image.std.x}"),
            "stage:1:17: stage 1 (clip): `min`: stats.yaml has no `image.std.x`; it has nothing "
            "there.");
  EXPECT_EQ(mistakes("{op: clip, min: list.yaml#x}"),
            "stage:1:17: stage 1 (clip): `min`: list.yaml holds a list; it must be what `forebay "
            "fit` writes.");
}

TEST_F(References, AreCheckedAsTheNumbersThatTheyAre) {
  EXPECT_EQ(mistakes("{op: clip, min: stats.yaml#image.dtype}"),
            "stage:1:17: stage 1 (clip): `min` is u8; it must be a number.");
  EXPECT_EQ(mistakes("{op: clip, min: stats.yaml#image.mean}"),
            "stage:1:17: stage 1 (clip): `min` is a list; it must be a number.");
  EXPECT_EQ(mistakes("{op: clip, min: stats.yaml#image}"),
            "stage:1:17: stage 1 (clip): `min` is a map; it must be a number.");
  EXPECT_EQ(mistakes("{op: histogram, bins: stats.yaml#image.percentiles.1}"),
            "stage:1:23: stage 1 (histogram): `bins` is -2.5; it must be an integer.");
  // The op itself says what is wrong with the length of a list.
  const auto normalize = stage("{op: normalize, mean: stats.yaml#image.mean, std: 1, layout: NC}");
  const ArraySpec x{Dtype::f32, {8, 4}};
  EXPECT_ERROR(normalize.op.infer({&x, 1}), invalid,
               "normalize: `mean` has 3 values, but `x` of shape (8, 4) has 4 along axis 1; give "
               "that many or one.");
}

TEST_F(References, AreReadInCpp) {
  EXPECT_EQ(read_statistic(folder_ + "/stats.yaml#image.mean").values,
            (std::vector{0.5, 1.0, 2.0}));
  EXPECT_EQ(read_statistic(folder_ + "/stats.yaml#image.percentiles.1").values, std::vector{-2.5});
  EXPECT_ERROR(read_statistic("stats.yaml"), invalid,
               "`stats.yaml` is no reference; it must be as `stats.yaml#image.mean`.");
  const std::string dtype = folder_ + "/stats.yaml#image.dtype";
  EXPECT_ERROR(read_statistic(dtype), invalid,
               "`" + dtype + "` is u8; it must be a number or a list of numbers.");
}

TEST_F(References, NormalizeWhatTheyWereTakenOf) {
  const Array x = kit::random({64, 5, 3}, Dtype::f32, 1, 10, 30);
  const auto columns = [&] { return array_source({{"a.b", x}}); };
  const FitReport report = finish(
      fit(Pipeline::build().source(columns()).device(Device::cpu()).spec(), {.channels = 2}));
  std::ofstream(folder_ + "/stats.yaml") << to_yaml(report);
  Spec spec = Pipeline::build().source(columns()).batch_size(64).device(Device::cpu()).spec();
  spec.stages = {
      stage("{op: normalize, mean: stats.yaml#a.b.mean, std: stats.yaml#a.b.std, axes: [0, 1]}")};
  const FitReport after = finish(fit(spec, {.channels = 2}));
  for (const FitStatistics& channel : after.fields[0].statistics) {
    EXPECT_NEAR(channel.mean, 0, 1e-6);
    EXPECT_NEAR(channel.std, 1, 1e-6);
  }
}

}  // namespace
}  // namespace forebay
