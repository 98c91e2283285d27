// `forebay run --state`: runs that are stopped, killed, resharded, and go on.

#include <algorithm>
#include <limits>
#include <set>

#include <nlohmann/json.hpp>

#include "killer_test.h"

namespace forebay::test {
namespace {

TEST_F(Cli, RunGoesOnFromItsStateFile) {
  Outcome got = forebay({"run", "train.yaml", "--batches", "2", "--state", "s.json"});
  EXPECT_EQ(got.exit_code, 0) << got.err;
  EXPECT_TRUE(has(got.out, ": 2 batches, 8 samples in ")) << got.out;
  got = forebay(
      {"run", "train.yaml", "--epochs", "2", "--state", "s.json", "--save", "out", "--json"});
  EXPECT_EQ(got.exit_code, 0) << got.err;
  EXPECT_TRUE(got.err.starts_with("s.json: going on behind 8 samples of epoch 0\n")) << got.err;
  EXPECT_EQ(nlohmann::json::parse(got.out)["batches"], 4);
  EXPECT_EQ(nlohmann::json::parse(got.out)["epochs"], 2);
  for (const char* file : {"0_2_x.npy", "1_0_x.npy", "1_1_x.npy", "1_2_x.npy"})
    EXPECT_TRUE(fs::exists(folder_ + "/out/" + file)) << file;
  EXPECT_FALSE(fs::exists(folder_ + "/out/0_1_x.npy"));
  got = forebay({"run", "train.yaml", "--epochs", "2", "--state", "s.json", "--json"});
  EXPECT_EQ(got.exit_code, 0) << got.err;
  EXPECT_EQ(nlohmann::json::parse(got.out)["batches"], 0);  // it has been done
  EXPECT_EQ(nlohmann::json::parse(got.out)["epochs"], 0);
}

TEST_F(Cli, RunRefusesAStateOfSomethingElse) {
  ASSERT_EQ(forebay({"run", "train.yaml", "--batches", "2", "--state", "s.json"}).exit_code, 0);
  std::string text = text_of(folder_ + "/train.yaml");
  write("train.yaml", text.replace(text.find("max: 1"), 6, "max: 2"));
  Outcome got = forebay({"run", "train.yaml", "--state", "s.json"});
  EXPECT_EQ(got.exit_code, 1);
  EXPECT_EQ(got.err,
            "--state: s.json: the state is of another pipeline; restore it where it was saved, or "
            "allow changes:\n"
            "  stage 1: was clip(min=-1, max=1): x -> x; is clip(min=-1, max=2): x -> x\n");
  got = forebay({"run", "train.yaml", "--state", "s.json", "--allow-changes"});
  EXPECT_EQ(got.exit_code, 0) << got.err;
  EXPECT_TRUE(has(got.out, ": 1 batches, 2 samples in ")) << got.out;
  got = forebay({"run", "train.yaml", "--state", "none/s.json"});
  EXPECT_EQ(got.exit_code, 1);
  EXPECT_TRUE(has(got.err, "none/s.json: it cannot be written.")) << got.err;
}

TEST_F(KilledRun, EndsAsOneThatNobodyStopped) {
  declare(20, 6);
  ASSERT_EQ(forebay({"run", "train.yaml", "--epochs", "3", "--save", "straight"}).exit_code, 0);
  EXPECT_GT(run_killed(1), 1);
  EXPECT_EQ(files_of("killed"), files_of("straight"));
}

TEST_F(KilledRun, ListsEachBadSampleOnce) {
  declare(20, 6);
  Array x = kit::random({20, 3}, Dtype::f32, 1);
  for (const int sample : {3, 11, 12})
    x.as<float>()[3 * sample] = std::numeric_limits<float>::quiet_NaN();
  write_npy(folder_ + "/x.npy", x.view());
  write("train.yaml", text_of(folder_ + "/train.yaml") +
                          "checks: {x: {finite: true}}\n"
                          "on_error: {mode: replace, max_count: 3, quarantine: bad.jsonl}\n");
  ASSERT_EQ(forebay({"run", "train.yaml", "--epochs", "3", "--save", "straight"}).exit_code, 0);
  std::string straight = text_of(folder_ + "/bad.jsonl");
  fs::remove(folder_ + "/bad.jsonl");
  EXPECT_GT(run_killed(1), 1);
  EXPECT_EQ(files_of("killed"), files_of("straight"));
  EXPECT_EQ(text_of(folder_ + "/bad.jsonl"), straight);
  EXPECT_EQ(std::count(straight.begin(), straight.end(), '\n'), 3);
}

TEST_F(KilledRun, OfAMixEndsAsOneThatNobodyStopped) {
  write("train.yaml",
        "version: 1\n"
        "batch_size: 3\n"
        "device: cpu\n"
        "source:\n"
        "  type: concat\n"
        "  source_field: source\n"
        "  sources:\n"
        "    - {name: a, type: npy, columns: {x: x.npy, y: y.npy}}\n"
        "    - {name: b, type: npy, columns: {y: y.npy, x: x.npy}}\n"
        "sampling: {mode: mix, proportions: {a: 0.7, b: 0.3}, samples: 17}\n"
        "shuffle: {mode: full}\n");
  const Outcome got = forebay({"check", "train.yaml"});
  EXPECT_EQ(got.out, "train.yaml: no mistakes; 17 samples make 6 batches of 3 an epoch, on cpu\n")
      << got.err;
  ASSERT_EQ(forebay({"run", "train.yaml", "--epochs", "3", "--save", "straight"}).exit_code, 0);
  EXPECT_GT(run_killed(2), 1);
  EXPECT_EQ(files_of("killed"), files_of("straight"));
  EXPECT_EQ(files_of("straight").size(), 3u * 6 * 3);
}

/// One process, then three, then two; every sample of the epoch is saved once.
TEST_F(KilledRun, GoesOnWithOtherNumbersOfProcesses) {
  declare(30, 2);
  write("shards.yaml", text_of(folder_ + "/train.yaml") + "shard: auto\n");
  struct Leg {
    int processes;
    const char* batches;
  };
  std::multiset<std::string> rows;
  int number = 0;
  for (const auto& [processes, batches] : {Leg{1, "3"}, Leg{3, "2"}, Leg{2, "3"}}) {
    const std::string leg = std::to_string(number++);
    std::vector<pid_t> children;
    for (int rank = 0; rank < processes; ++rank) {
      const std::string mine = leg + "." + std::to_string(rank);
      if (number > 1) fs::copy(folder_ + "/state", folder_ + "/state." + mine);
      children.push_back(
          start({"run", "shards.yaml", "--batches", batches, "--state", "state." + mine, "--save",
                 "saved." + mine},
                null_, null_,
                {"RANK=" + std::to_string(rank), "WORLD_SIZE=" + std::to_string(processes)}));
    }
    for (int rank = 0; rank < processes; ++rank) {
      int status = 0;
      waitpid(children[static_cast<std::size_t>(rank)], &status, 0);
      EXPECT_EQ(status, 0);
      const std::string mine = leg + "." + std::to_string(rank);
      for (const auto& [name, bytes] : files_of("saved." + mine)) {
        const Array x = read_npy(folder_ + "/saved." + mine + "/" + name);
        for (std::int64_t row = 0; row < x.shape()[0]; ++row)
          rows.insert(std::string(x.as<char>() + row * 12, 12));
      }
      EXPECT_EQ(text_of(folder_ + "/state." + mine), text_of(folder_ + "/state." + leg + ".0"));
    }
    fs::copy(folder_ + "/state." + leg + ".0", folder_ + "/state",
             fs::copy_options::overwrite_existing);
  }
  std::multiset<std::string> want;
  const Array x = read_npy(folder_ + "/x.npy");
  for (std::int64_t row = 0; row < 30; ++row) {
    std::string clipped;
    for (int i = 0; i < 3; ++i) {
      const float value = std::clamp(x.as<float>()[row * 3 + i], -1.0f, 1.0f);
      clipped.append(reinterpret_cast<const char*>(&value), 4);
    }
    want.insert(clipped);
  }
  EXPECT_EQ(rows, want);
}

}  // namespace
}  // namespace forebay::test
