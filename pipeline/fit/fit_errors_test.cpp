#include <forebay/array/require.h>
#include <forebay/pipeline/fit.h>
#include <forebay/pipeline/pipeline.h>

#include "kit/kit.h"

namespace forebay {
namespace {

TEST(FitText, IsTheSameInYamlAndInJson) {
  const Array x = Array::from<float>({3, 2}, {1, 2, 3, NAN, 5, 2});
  const FitPartial partial =
      fit(Pipeline::build().source(array_source({{"x", x}})).device(Device::cpu()).spec(),
          {.channels = 1});
  const FitReport report = finish(partial, {.bins = 2, .percentiles = {50, 99.5}});
  EXPECT_EQ(to_yaml(report),
            "# Statistics of 3 samples, by `forebay fit`.\n"
            "x:\n"
            "  dtype: f32\n"
            "  count: [3, 3]\n"
            "  nan: [0, 1]\n"
            "  inf: [0, 0]\n"
            "  mean: [3, 2]\n"
            "  std: [1.632993161855452, 0]\n"
            "  min: [1, 2]\n"
            "  max: [5, 2]\n"
            "  percentiles: {50: [3, 2], 99.5: [4.98, 2]}\n"
            "  percentile_errors: {50: [0, 0], 99.5: [0, 0]}\n"
            "  histogram: {edges: [[1, 3, 5], [1.5, 2.5]], counts: [[1, 2], [2]]}\n");
  EXPECT_EQ(to_json(report),
            "{\n"
            "  \"x\": {\n"
            "    \"dtype\": \"f32\",\n"
            "    \"count\": [3, 3],\n"
            "    \"nan\": [0, 1],\n"
            "    \"inf\": [0, 0],\n"
            "    \"mean\": [3, 2],\n"
            "    \"std\": [1.632993161855452, 0],\n"
            "    \"min\": [1, 2],\n"
            "    \"max\": [5, 2],\n"
            "    \"percentiles\": {\"50\": [3, 2], \"99.5\": [4.98, 2]},\n"
            "    \"percentile_errors\": {\"50\": [0, 0], \"99.5\": [0, 0]},\n"
            "    \"histogram\": {\"edges\": [[1, 3, 5], [1.5, 2.5]], \"counts\": [[1, 2], [2]]}\n"
            "  }\n"
            "}\n");
}

class FitErrors : public testing::Test {
 protected:
  Spec spec() const {
    return Pipeline::build()
        .source(array_source(
            {{"x", kit::random({10, 3}, Dtype::f32, 1)}, {"z", kit::random({10}, Dtype::c64, 2)}}))
        .batch_size(4)
        .device(Device::cpu())
        .spec();
  }
  FitPartial part(int number, int of) const {
    Spec one = spec();
    one.shard = {number, of};
    return fit(one);
  }
};

TEST_F(FitErrors, SayWhatIsWrongWithTheQuestion) {
  EXPECT_ERROR(fit(spec(), {.fields = {"xs"}}), invalid,
               "fit: there is no field `xs` in the source; there are `x`, `z`. Did you mean `x`?");
  EXPECT_ERROR(fit(spec(), {.fields = {"x", "x"}}), invalid,
               "fit: the field `x` is named twice; name it once.");
  EXPECT_ERROR(
      fit(spec(), {.fields = {"z"}}), invalid,
      "fit: `z` has dtype c64; statistics are of real numbers. Add an `abs` stage, or name "
      "other fields.");
  EXPECT_ERROR(
      fit(spec(), {.channels = 2}), invalid,
      "fit: there is no axis 2 for channels in `x` with shape (1, 3); it has axis 1 behind "
      "the samples. Name the fields that have it.");
  EXPECT_ERROR(fit(spec(), {.bits = 13}), invalid,
               "fit: `bits` is 13; it must be between 0 and 12.");
  const FitPartial all = part(0, 1);
  EXPECT_ERROR(finish(all, {.bins = 0}), invalid, "fit: `bins` is 0; it must be at least 1.");
  EXPECT_ERROR(finish(all, {.percentiles = {101}}), invalid,
               "fit: there is no percentile 101; percentiles are 0 to 100.");
}

TEST_F(FitErrors, SayWhichSamplesAreMissingOrThereTwice) {
  EXPECT_ERROR(merge({}), invalid, "fit: there are no parts to put together.");
  EXPECT_ERROR(finish(part(1, 3)), invalid,
               "fit: samples 0 to 2 and 6 to 9 of 10 are missing; put the parts of all shards "
               "together first.");
  EXPECT_ERROR(merge(std::vector{part(0, 2), part(1, 3)}), invalid,
               "fit: samples 3 to 4 are in two of the parts; each sample counts once. Leave one of "
               "them out.");
  const FitPartial coarse = fit(spec(), {.bits = 3});
  EXPECT_ERROR(merge(std::vector{part(0, 1), coarse}), invalid,
               "fit: these are of different data, stages or settings: `10 samples, as the source "
               "has them, of x f32 (3,), z "
               "c64 (); fit of x f32 () bits 7` and `10 samples, as the source has them, of x f32 "
               "(3,), z c64 (); fit of x "
               "f32 () bits 3`. Only parts of one fit can be put together.");
}

TEST_F(FitErrors, RefuseWhatIsNoState) {
  const std::string good = part(0, 1).to_json();
  const std::string refused = "p.json: it is no state of `forebay fit`, or one of another version.";
  for (const auto& [old, made] : {std::pair{"\"forebay_fit\": 1", "\"forebay_fit\": 2"},
                                  {"\"samples\"", "\"sample\""},
                                  {"\"table\": \"", "\"table\": \"fffff:1 1 1,"},
                                  {"\"table\": \"", "\"table\": \"1:1 1"},
                                  {"\"table\": \"", "\"table\": \"x"},
                                  {"\"shape\": []", "\"shape\": [2]"},
                                  {"[0, 10]", "[0]"},
                                  {"\"bits\": 7", "\"bits\": 99"}}) {
    std::string bad = good;
    bad.replace(bad.find(old), std::string(old).size(), made);
    EXPECT_ERROR(FitPartial::from_json(bad, "p.json"), invalid, refused);
  }
}

}  // namespace
}  // namespace forebay
