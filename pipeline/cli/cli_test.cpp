#include <algorithm>
#include <limits>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <forebay/ops/registry.h>
#include <forebay/pipeline/cli/command_test.h>
#include <forebay/pipeline/config/keys.h>

namespace forebay {
namespace {

using test::Cli;
using test::command;
using test::has;
using test::Outcome;
using test::text_of;

namespace fs = std::filesystem;

TEST_F(Cli, CheckSaysThatAllIsWell) {
  const Outcome got = forebay({"check", "train.yaml"});
  EXPECT_EQ(got.exit_code, 0);
  EXPECT_EQ(got.out, "train.yaml: no mistakes; 10 samples make 3 batches of 4 an epoch, on cpu\n");
  EXPECT_EQ(got.err, "");
}

TEST_F(Cli, CheckSaysEveryMistakeOnStderr) {
  write("bad.yaml",
        "version: 1\n"
        "batch_size: 0\n"
        "source: {type: npy, columns: {x: x.npy}}\n"
        "stages:\n"
        "  - {op: clip, maximum: 1}\n");
  const Outcome got = forebay({"check", "bad.yaml"});
  EXPECT_EQ(got.exit_code, 1);
  EXPECT_EQ(got.out, "");
  EXPECT_EQ(got.err,
            "bad.yaml:2:13: `batch_size` is 0; it must be at least 1.\n"
            "bad.yaml:5:16: stage 1 (clip): unknown key `maximum`; did you mean `max`?\n");
}

TEST_F(Cli, ChecksFindWhatOnlyCompilingSees) {
  write("bad.yaml",
        "version: 1\n"
        "batch_size: 4\n"
        "source: {type: npy, columns: {x: x.npy}}\n"
        "stages:\n"
        "  - {op: clip}\n"
        "output: q\n");
  const Outcome got = forebay({"check", "bad.yaml"});
  EXPECT_EQ(got.exit_code, 1);
  EXPECT_EQ(got.err,
            "bad.yaml:5:5: stage 1 (clip): neither `min` nor `max` is given; give one or both.\n"
            "bad.yaml:6:9: output: there is no field `q`; there are `x`. Did you mean `x`?\n");
}

TEST_F(Cli, NotesGoToStderr) {
  const std::string text = text_of(folder_ + "/train.yaml");
  write("train.yaml", text + "num_workers: 1\n");
  const Outcome got = forebay({"check", "train.yaml"});
  EXPECT_EQ(got.exit_code, 0);
  EXPECT_EQ(got.err, "train.yaml:7:1: note: `num_workers` is called `num_threads` here.\n");
}

TEST_F(Cli, AFileThatIsNotThereIsAnErrorOfTheInput) {
  const Outcome got = forebay({"plan", "none.yaml"});
  EXPECT_EQ(got.exit_code, 1);
  EXPECT_EQ(got.err, "none.yaml: cannot be opened: No such file or directory.\n");
}

TEST_F(Cli, PlanPrintsStepsShapesAndBytes) {
  const Outcome got = forebay({"plan", "train.yaml"});
  EXPECT_EQ(got.exit_code, 0);
  EXPECT_EQ(got.err, "");
  for (const char* part : {"batches of 4", "clip", "f32 (4, 3)", "i64 (4,)", "cpu", " B"}) {
    EXPECT_TRUE(has(got.out, part)) << part << "\n" << got.out;
  }
}

TEST_F(Cli, PlanAndRunTellOfBadSamples) {
  Array x = kit::random({10, 3}, Dtype::f32, 1);
  x.as<float>()[13] = std::numeric_limits<float>::infinity();
  write_npy(folder_ + "/x.npy", x.view());
  write("bad.yaml", text_of(folder_ + "/train.yaml") +
                        "checks: {x: {finite: true}, y: {min: 0, max: 9}}\n"
                        "on_error: {mode: skip, max_share: 0.25, quarantine: bad.jsonl}\n");
  EXPECT_TRUE(
      has(forebay({"plan", "bad.yaml"}).out,
          "  checks: x finite; y 0 to 9\n"
          "  bad samples are skipped; more than 2 of the 10 end the run; they are listed in "
          "bad.jsonl\n"));
  EXPECT_FALSE(fs::exists(folder_ + "/bad.jsonl"));
  Outcome got = forebay({"run", "bad.yaml"});
  EXPECT_EQ(got.exit_code, 0) << got.err;
  EXPECT_TRUE(has(got.out,
                  "1 bad samples were skipped; the first:\n"
                  "  npy x.npy, y.npy sample 4: `x`[1] is inf; it must be finite\n"))
      << got.out;
  EXPECT_EQ(text_of(folder_ + "/bad.jsonl"),
            R"({"source":"npy x.npy, y.npy","index":4,"reason":"`x`[1] is inf; it must be finite"})"
            "\n");
  got = forebay({"run", "bad.yaml", "--json", "--epochs", "2"});
  const auto json = nlohmann::json::parse(got.out);
  EXPECT_EQ(json["on_error"], "skip");
  EXPECT_EQ(json["bad_samples"], 2);
  ASSERT_EQ(json["first_bad_samples"].size(), 1u);
  EXPECT_EQ(json["first_bad_samples"][0]["index"], 4);
  got = forebay({"fit", "bad.yaml", "--device", "cpu"});
  EXPECT_EQ(got.exit_code, 0);
  EXPECT_TRUE(has(got.err, "1 of 10 samples are bad and left out\n")) << got.err;
  EXPECT_TRUE(got.out.starts_with(
      "# Statistics of 9 samples, by `forebay fit`; 1 bad ones are left out.\n"))
      << got.out;
  EXPECT_TRUE(has(forebay({"run", "train.yaml"}).out, " samples in "));
}

TEST_F(Cli, UsageErrorsExitWithTwo) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{},
                                             {"walk"},
                                             {"check"},
                                             {"run", "train.yaml", "--batches", "-1"},
                                             {"run", "train.yaml", "--batches", "many"},
                                             {"plan", "train.yaml", "--json"},
                                             {"run", "train.yaml", "--allow-changes"},
                                             {"explain"}}) {
    const Outcome got = forebay(arguments);
    EXPECT_EQ(got.exit_code, 2);
    EXPECT_EQ(got.out, "");
    EXPECT_NE(got.err, "");
  }
}

TEST_F(Cli, HelpAndVersionAreNoErrors) {
  EXPECT_EQ(forebay({"--help"}).exit_code, 0);
  const Outcome help = forebay({"run", "--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_TRUE(has(help.out, "--save"));
  EXPECT_TRUE(forebay({"--version"}).out.starts_with("forebay 0."));
}

TEST_F(Cli, ADeviceThatIsNoneIsAnError) {
  const Outcome got = forebay({"check", "train.yaml", "--device", "gpu"});
  EXPECT_EQ(got.exit_code, 1);
  EXPECT_EQ(got.err, "device `gpu` is not known; use auto, cpu, cuda or cuda:N.\n");
}

TEST_F(Cli, DeviceOverridesTheFiles) {
  const std::string text = text_of(folder_ + "/train.yaml");
  write("train.yaml", std::string(text).replace(text.find("device: cpu"), 11, "device: cuda:63"));
  EXPECT_EQ(forebay({"run", "train.yaml"}).exit_code, 1);
  const Outcome got = forebay({"run", "train.yaml", "--device", "cpu"});
  EXPECT_EQ(got.exit_code, 0) << got.err;
  EXPECT_TRUE(has(got.out, "on cpu")) << got.out;
}

TEST_F(Cli, PlansForADeviceThatIsNotThereButDoesNotRun) {
  Outcome got = forebay({"plan", "train.yaml", "--device", "cuda:63"});
  EXPECT_EQ(got.exit_code, 0) << got.err;
  EXPECT_TRUE(has(got.out, "batches of 4 on cuda:63")) << got.out;
  EXPECT_TRUE(has(got.out, "copy x, y to cuda:63")) << got.out;
  got = forebay({"check", "train.yaml", "--device", "cuda:63"});
  EXPECT_EQ(got.exit_code, 0) << got.err;
  EXPECT_TRUE(has(got.out, "on cuda:63")) << got.out;
  got = forebay({"run", "train.yaml", "--device", "cuda:63"});
  EXPECT_EQ(got.exit_code, 1);
  EXPECT_EQ(got.err, kit::caught([] { device_from_name("cuda:63"); }).text + "\n");
}

TEST_F(Cli, PlanSaysTheTimeOfTheBytesWhereTheDeviceIs) {
  const Outcome outcome = forebay({"plan", "train.yaml"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find(" GB/s, the copy bandwidth measured on cpu just now\n"),
            std::string::npos)
      << outcome.out;
}

TEST_F(Cli, DumpsTheKernelsOfAPlanWithTheNamesOfTheirStages) {
  const Outcome refused = forebay({"plan", "train.yaml", "--dump-kernels", "kernels"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_EQ(refused.err,
            "--dump-kernels: the pipeline runs on cpu; kernels are for CUDA. Add --device cuda.\n");
  write("file", "");
  const Outcome unmade =
      forebay({"plan", "train.yaml", "--device", "cuda", "--dump-kernels", "file/kernels"});
  EXPECT_EQ(unmade.exit_code, 1);
  const Outcome done =
      forebay({"plan", "train.yaml", "--device", "cuda", "--dump-kernels", "kernels"});
  if (done.err.find("built without CUDA") != std::string::npos) GTEST_SKIP() << done.err;
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_NE(done.out.find("\n1 kernels written to kernels\n"), std::string::npos) << done.out;
  EXPECT_NE(unmade.err.find("--dump-kernels: file/kernels cannot be made: "), std::string::npos)
      << unmade.err;
  EXPECT_TRUE(fs::exists(folder_ + "/kernels/prelude.cu"));
  const std::string text = text_of(folder_ + "/kernels/02_clip_0_pointwise.cu");
  EXPECT_NE(text.find("// train, step 2: clip\n//   stage 1 (clip)\n"), std::string::npos) << text;
  EXPECT_NE(text.find("__global__"), std::string::npos) << text;
}

TEST_F(Cli, RunSavesEachOutputOfEachBatch) {
  const Outcome got = forebay({"run", "train.yaml", "--save", "out/deep", "--epochs", "2"});
  EXPECT_EQ(got.exit_code, 0) << got.err;
  EXPECT_TRUE(has(got.out, "train on cpu: 6 batches, 20 samples in ")) << got.out;
  EXPECT_TRUE(has(got.out, "12 files saved in out/deep\n")) << got.out;
  EXPECT_TRUE(has(got.out, "clip")) << got.out;
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (int step = 0; step < 3; ++step) {
      const std::string head =
          folder_ + "/out/deep/" + std::to_string(epoch) + "_" + std::to_string(step);
      const std::int64_t first = step * 4, rows = step == 2 ? 2 : 4;
      const Array want = kit::generate({rows, 3}, Dtype::f32, [&](std::int64_t i) {
        return std::clamp(kit::value(x_.view(), first * 3 + i), -1.0, 1.0);
      });
      EXPECT_TRUE(kit::same_bits(read_npy(head + "_x.npy"), want));
      EXPECT_EQ(kit::values(read_npy(head + "_y.npy")),
                kit::values(y_.slice(0, first, first + rows)));
    }
  }
}

TEST_F(Cli, RunOnAPipePrintsPlainLines) {
  const Outcome got = forebay({"run", "train.yaml", "--epochs", "2"});
  EXPECT_EQ(got.exit_code, 0);
  EXPECT_EQ(std::count(got.err.begin(), got.err.end(), '\n'), 2) << got.err;
  EXPECT_TRUE(got.err.starts_with("epoch 0: 3 of 6 batches, ")) << got.err;
  EXPECT_TRUE(has(got.err, "\nepoch 1: 6 of 6 batches, ")) << got.err;
  EXPECT_EQ((got.err + got.out).find_first_of("\r\033"), std::string::npos);
}

TEST_F(Cli, RunOnATerminalDrawsABar) {
  const Outcome got = forebay({"run", "train.yaml"}, true);
  EXPECT_EQ(got.exit_code, 0);
  EXPECT_TRUE(has(got.err, "\r[##############################] epoch 0, 3 of 3 batches, "))
      << got.err;
  EXPECT_FALSE(has(got.out, "#"));
}

TEST_F(Cli, RunStopsAfterTheBatchesThatWereAskedFor) {
  const auto report = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"run", "train.yaml", "--json"});
    return nlohmann::json::parse(forebay(more).out);
  };
  EXPECT_EQ(report({"--batches", "2"})["batches"], 2);
  EXPECT_EQ(report({"--batches", "7"})["batches"], 7);  // goes on into a third epoch
  EXPECT_EQ(report({"--batches", "7"})["epochs"], 3);
  EXPECT_EQ(report({"--batches", "7", "--epochs", "1"})["batches"], 3);
  EXPECT_EQ(report({"--batches", "3"})["samples"], 10);
}

TEST_F(Cli, JsonIsAllThatStdoutHolds) {
  const Outcome got = forebay({"run", "train.yaml", "--json"});
  EXPECT_EQ(got.exit_code, 0);
  const auto json = nlohmann::json::parse(got.out);
  EXPECT_EQ(json["pipeline"], "train");
  EXPECT_EQ(json["device"], "cpu");
  EXPECT_EQ(json["batches"], 3);
  EXPECT_EQ(json["samples"], 10);
  EXPECT_GT(json["seconds"].get<double>(), 0);
  EXPECT_NEAR(json["samples_per_second"].get<double>(), 10 / json["seconds"].get<double>(), 1e-6);
  EXPECT_GE(json["wait_share"].get<double>(), 0);
  EXPECT_LE(json["wait_share"].get<double>(), 1);
  ASSERT_EQ(json["steps"].size(), 1u);
  EXPECT_EQ(json["steps"][0]["label"], "clip");
  EXPECT_GE(json["steps"][0]["runs"], 3);  // batches ahead were made too
  EXPECT_EQ(json["returned_bytes"], 0);
}

TEST_F(Cli, RunOfNoSamplesEnds) {
  write_npy(folder_ + "/x.npy", kit::random({0, 3}, Dtype::f32, 1).view());
  write_npy(folder_ + "/y.npy", kit::random({0}, Dtype::i64, 1).view());
  const Outcome got = forebay({"run", "train.yaml", "--batches", "5", "--json"});
  EXPECT_EQ(got.exit_code, 0) << got.err;
  EXPECT_EQ(nlohmann::json::parse(got.out)["batches"], 0);
}

TEST_F(Cli, RunSaysWhyItCannotSave) {
  const Outcome got = forebay({"run", "train.yaml", "--save", "x.npy"});
  EXPECT_EQ(got.exit_code, 1);
  EXPECT_EQ(got.err, "--save: x.npy cannot be made: Not a directory.\n");
}

TEST_F(Cli, ExplainTellsAllThatAnOpSaysOfItself) {
  const Outcome got = forebay({"explain", "clip"});
  EXPECT_EQ(got.exit_code, 0);
  EXPECT_EQ(got.out.substr(0, got.out.find("devices")),
            "clip: Limits each element to [min, max].\n"
            "\n"
            "also called  clamp\n"
            "kind         pointwise\n");
  EXPECT_TRUE(has(got.out,
                  "setting  type                    default  bounds  also called  meaning\n"
                  "min      number, integers exact  none             a_min        The least value; "
                  "smaller ones become it.\n"))
      << got.out;
  EXPECT_TRUE(has(got.out, "example\n  - {op: clip, min: -3, max: 3}\n")) << got.out;
  EXPECT_EQ(forebay({"explain", "clamp"}).out, got.out);
}

TEST_F(Cli, ExplainsEveryOpAndKey) {
  for (const OpEntry& entry : registry()) {
    const Outcome got = forebay({"explain", std::string(entry.def.name)});
    EXPECT_EQ(got.exit_code, 0);
    EXPECT_TRUE(has(got.out, std::string(entry.def.summary)) &&
                has(got.out, std::string(entry.def.example)))
        << got.out;
  }
  for (const auto& [path, keys] : config::sections()) {
    for (const config::Key& key : keys) {
      const std::string name = std::string(path) + std::string(key.name);
      const Outcome got = forebay({"explain", name});
      EXPECT_EQ(got.out.substr(0, got.out.find('\n')), name + ": " + std::string(key.doc));
    }
  }
}

TEST_F(Cli, ExplainOfAKeyGivesTypeDefaultAndOtherNames) {
  EXPECT_EQ(forebay({"explain", "num_threads"}).out,
            "num_threads: Threads that read and compute on the host; 0 is one for each core.\n"
            "\n"
            "type         integer, 0 to 4096\n"
            "default      0\n"
            "also called  num_workers\n");
}

TEST_F(Cli, ExplainOfAnUnknownNameSaysTheNearest) {
  const Outcome got = forebay({"explain", "normalise"});
  EXPECT_EQ(got.exit_code, 1);
  EXPECT_EQ(got.out, "");
  EXPECT_EQ(got.err, "there is no op or key `normalise`; did you mean `normalize`?\n");
  EXPECT_EQ(forebay({"explain", "zzzzzzzzzzzz"}).err,
            "there is no op or key `zzzzzzzzzzzz`; `forebay ops` lists the ops.\n");
}

TEST_F(Cli, OpsListsEveryOp) {
  const Outcome got = forebay({"ops"});
  EXPECT_EQ(got.exit_code, 0);
  EXPECT_EQ(static_cast<std::size_t>(std::count(got.out.begin(), got.out.end(), '\n')),
            registry().size() + 1);
  for (const OpEntry& entry : registry()) {
    EXPECT_TRUE(has(got.out, fmt::format("\n{} ", entry.def.name))) << entry.def.name;
    EXPECT_TRUE(has(got.out, std::string(entry.def.summary))) << entry.def.name;
  }
}

TEST_F(Cli, SchemaDescribesEveryKeyOpAndSetting) {
  const Outcome got = forebay({"schema"});
  EXPECT_EQ(got.exit_code, 0);
  const auto schema = nlohmann::json::parse(got.out);
  for (const config::Key& key : config::pipeline_keys()) {
    EXPECT_EQ(schema["properties"][std::string(key.name)]["description"], std::string(key.doc));
    for (const auto alias : key.aliases)
      EXPECT_EQ(schema["properties"][std::string(alias)]["deprecated"], true);
  }
  const auto& cases = schema["properties"]["stages"]["items"]["allOf"];
  ASSERT_EQ(cases.size(), registry().size());
  for (std::size_t i = 0; i < registry().size(); ++i) {
    EXPECT_EQ(cases[i]["then"]["properties"]["op"]["enum"][0], std::string(registry()[i].def.name));
    EXPECT_EQ(cases[i]["then"]["additionalProperties"], false);
  }
  const auto clip = std::find_if(cases.begin(), cases.end(), [](const auto& stage) {
    return stage["then"]["properties"]["op"]["enum"] == nlohmann::json::array({"clip", "clamp"});
  });
  ASSERT_NE(clip, cases.end());
  const auto& keys = (*clip)["then"]["properties"];
  EXPECT_EQ(keys["min"]["description"], "The least value; smaller ones become it.");
  EXPECT_EQ(keys["min"]["anyOf"][0]["type"], "number");
  EXPECT_EQ(keys["a_min"]["deprecated"], true);
  EXPECT_TRUE(keys.contains("inputs"));
}

}  // namespace
}  // namespace forebay
