#include <nlohmann/json.hpp>

#include <forebay/pipeline/cli/command_test.h>
#include <forebay/pipeline/fit.h>

namespace forebay {
namespace {

using test::Cli;
using test::has;
using test::Outcome;
using test::text_of;

using FitCommand = Cli;

TEST_F(FitCommand, PrintsStatisticsOfTheSource) {
  const Outcome got = forebay({"fit", "train.yaml", "--percentiles", "50", "--bins", "4"});
  EXPECT_EQ(got.exit_code, 0) << got.err;
  EXPECT_TRUE(has(got.out, "# Statistics of 10 samples, by `forebay fit`.\nx:\n  dtype: f32\n"));
  EXPECT_TRUE(has(got.out, "\ny:\n  dtype: i64\n  count: 10\n"));
  EXPECT_TRUE(has(got.err, "10 of 10 samples, "));
  const auto json = nlohmann::json::parse(
      forebay({"fit", "train.yaml", "--field", "x", "--channels", "1", "--json"}).out);
  EXPECT_EQ(json.size(), 1U);
  EXPECT_EQ(json["x"]["mean"].size(), 3U);
  EXPECT_EQ(json["x"]["count"], (std::vector{10, 10, 10}));
}

TEST_F(FitCommand, WritesWhatAPipelineReads) {
  write("standard.yaml",
        "version: 1\n"
        "batch_size: 10\n"
        "device: cpu\n"
        "source: {type: npy, columns: {x: x.npy}}\n"
        "stages:\n"
        "  - {op: clip, min: -1, max: 1}\n"
        "  - {op: normalize, mean: stats.yaml#x.mean, std: stats.yaml#x.std}\n");
  EXPECT_EQ(forebay({"check", "standard.yaml"}).exit_code, 1);
  // The stages behind those asked for, which need the statistics, are not read yet.
  const Outcome fitted = forebay({"fit", "standard.yaml", "--after", "1", "-o", "stats.yaml"});
  EXPECT_EQ(fitted.exit_code, 0) << fitted.err;
  EXPECT_EQ(fitted.out, "");
  EXPECT_EQ(forebay({"check", "standard.yaml"}).exit_code, 0);
  const auto after =
      nlohmann::json::parse(forebay({"fit", "standard.yaml", "--after", "2", "--json"}).out);
  EXPECT_NEAR(after["x"]["mean"].get<double>(), 0, 1e-6);
  EXPECT_NEAR(after["x"]["std"].get<double>(), 1, 1e-6);
}

TEST_F(FitCommand, PutsShardsTogetherToTheSameBits) {
  const std::string whole = forebay({"fit", "train.yaml"}).out;
  for (const std::string shard : {"0", "1", "2"}) {
    const Outcome got =
        forebay({"fit", "train.yaml", "--shard", shard + "/3", "--partial", shard + ".json"});
    EXPECT_EQ(got.exit_code, 0) << got.err;
    EXPECT_EQ(got.out, "");
    EXPECT_TRUE(has(got.err, shard + ".json: " + (shard == "2" ? "4" : "3") +
                                 " of 10 samples; put all parts together with --merge\n"));
  }
  EXPECT_EQ(forebay({"fit", "--merge", "2.json", "0.json", "1.json"}).out, whole);
  const Outcome part = forebay({"fit", "--merge", "2.json", "0.json"});
  EXPECT_EQ(part.exit_code, 1);
  EXPECT_EQ(part.err,
            "fit: samples 3 to 5 of 10 are missing; put the parts of all shards together first.\n");
}

TEST_F(FitCommand, GoesOnFromAState) {
  const std::string whole = forebay({"fit", "train.yaml"}).out;
  EXPECT_EQ(forebay({"fit", "train.yaml", "--shard", "0/2", "--partial", "p.json"}).exit_code, 0);
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/p.json.part"));
  const Outcome got = forebay({"fit", "train.yaml", "--partial", "p.json", "--resume"});
  EXPECT_EQ(got.out, whole);
  EXPECT_TRUE(has(got.err, "5 of 5 samples, "));
  // Nothing is left to do, and the state says all.
  EXPECT_EQ(forebay({"fit", "train.yaml", "--partial", "p.json", "--resume"}).out, whole);
  const Outcome other =
      forebay({"fit", "train.yaml", "--bits", "3", "--partial", "p.json", "--resume"});
  EXPECT_EQ(other.exit_code, 1);
  EXPECT_TRUE(has(other.err, "fit: these are of different data, stages or settings: "));
}

TEST_F(FitCommand, SaysWhatIsWrong) {
  const auto error = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "fit");
    const Outcome got = forebay(std::move(arguments));
    EXPECT_EQ(got.exit_code, 1);
    EXPECT_EQ(got.out, "");
    return got.err;
  };
  EXPECT_EQ(error({}),
            "fit: there is no file; give a pipeline in YAML, or partial states to --merge.\n");
  EXPECT_EQ(error({"train.yaml", "--shard", "3/3", "--partial", "p.json"}),
            "--shard is `3/3`; it must be a number and how many there are, from 0/3 to 2/3.\n");
  EXPECT_EQ(error({"train.yaml", "--after", "2"}),
            "train.yaml:6:3: the first 2 stages were asked for, but it has 1.\n");
  EXPECT_TRUE(has(error({"train.yaml", "-o", "no/stats.yaml"}),
                  "\nno/stats.yaml: it cannot be written.\n"));
  EXPECT_EQ(error({"--merge", "x.npy"}).substr(0, 6), "x.npy:");
  EXPECT_EQ(forebay({"fit", "train.yaml", "--resume"}).exit_code, 2);
}

}  // namespace
}  // namespace forebay
