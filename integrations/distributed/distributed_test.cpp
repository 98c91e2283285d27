// Ranks in processes of their own: what they agree on, share and exchange, and how they end.

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "launch_test.h"

namespace forebay::test {
namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

using Ranks = Launch;

TEST_F(Ranks, ShareAnEpochInEqualSteps) {
  const auto outcomes = ranks(3, {"epoch"});
  std::vector<int> ids;
  for (int rank = 0; rank < 3; ++rank) {
    const Outcome& outcome = outcomes[static_cast<std::size_t>(rank)];
    EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
    EXPECT_TRUE(has(outcome.text, "rank " + std::to_string(rank) + ": 6 of 6 steps\n"))
        << outcome.text;
    std::ifstream file(folder_ + "/ids.0." + std::to_string(rank));
    for (int id = 0; file >> id;)
      ids.push_back(id);
  }
  std::sort(ids.begin(), ids.end());
  std::vector<int> all(kSamples);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(ids, all);
  EXPECT_TRUE(
      has(outcomes[0].text,
          "                             sum             min on rank                max on "
          "rank\n"
          "batches                       18               6 0                        6 0\n"))
      << outcomes[0].text;
  EXPECT_FALSE(has(outcomes[1].text, "batches"));
}

TEST_F(Ranks, WithAnotherFileFailTogether) {
  declare("other.yaml", {.minimum = "min: -2", .data = "other.npy", .seed = 6, .batch_size = 8});
  for (const Outcome& outcome : ranks(3, {"differ"})) {
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_TRUE(outcome.text.starts_with(
        "the ranks do not have the same pipeline; they must differ in nothing but their shard and "
        "device:\n"
        "  seed: 5 on ranks 0 and 2; 6 on rank 1\n"
        "  stage 1: clip(min=-1, max=1): x -> x on ranks 0 and 2; clip(min=-2, max=1): x -> x on "
        "rank 1\n"
        "  dataset, content: "))
        << outcome.text;
    EXPECT_TRUE(outcome.text.ends_with("\n  batch size: 4 on ranks 0 and 2; 8 on rank 1\n"))
        << outcome.text;
  }
}

TEST_F(Ranks, WithAMistakeInOneFileFailTogether) {
  declare("other.yaml", {.minimum = "minn: -2"});
  for (const Outcome& outcome : ranks(2, {"differ"})) {
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_EQ(
        outcome.text,
        "not every rank has a pipeline:\n"
        "  rank 1: other.yaml:8:16: stage 1 (clip): unknown key `minn`; did you mean `min`?\n");
  }
}

TEST_F(Ranks, EachNeedItsShard) {
  for (const Outcome& outcome : ranks(2, {"shardless"})) {
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_TRUE(has(outcome.text,
                    "  rank 1: its pipeline has shard 0 of 1; it must be 1 of 2. Write `shard: "
                    "auto`, or give the builder ranks.shard().\n"))
        << outcome.text;
  }
}

class Deaths : public Launch {
 protected:
  /// One of `count` ranks, the first or the last, ends in one way while the others wait in another:
  /// they must end with 1, soon, and say `why`.
  void expect_end(int count, const std::string& how, const std::string& where,
                  const std::string& who, const std::string& why) const {
    const auto begin = std::chrono::steady_clock::now();
    const auto outcomes = ranks(count, {"die", how, where, who});
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 30s);
    const int dead = who == "first" ? 0 : count - 1;
    for (int rank = 0; rank < count; ++rank) {
      const Outcome& outcome = outcomes[static_cast<std::size_t>(rank)];
      if (rank == dead) {
        EXPECT_EQ(outcome.exit_code, how == "kill" ? 128 + SIGKILL : how == "exit" ? 0 : 1);
        continue;
      }
      EXPECT_EQ(outcome.exit_code, 1);
      const std::string start =
          "forebay: rank " + std::to_string(rank) + " of " + std::to_string(count) + " ends: ";
      EXPECT_TRUE(has(outcome.text, start + why)) << outcome.text;
    }
  }
  const std::string silent_ = " has not been heard of for 2 s: it was killed, or is stopped.\n";
  const std::string failed_ = " has failed, as it says itself.\n";
};

TEST_F(Deaths, KilledInACollective) { expect_end(3, "kill", "gather", "last", "rank 2" + silent_); }
TEST_F(Deaths, KilledInAWaitForData) { expect_end(2, "kill", "data", "last", "rank 1" + silent_); }
TEST_F(Deaths, ExitInAReductionOfGradients) {
  expect_end(2, "exit", "gradients", "last", "rank 1" + silent_);
}
TEST_F(Deaths, ExceptionInAReductionOfGradients) {
  expect_end(2, "throw", "gradients", "last", "rank 1" + failed_);
}
TEST_F(Deaths, ExceptionWhileOthersCompute) {
  expect_end(3, "throw", "computing", "first", "rank 0" + failed_);
}
TEST_F(Deaths, KilledWithItsStore) {
  expect_end(2, "kill", "gather", "first",
             "the store of the ranks is gone (the store at 127.0.0.1:");
}

TEST_F(Ranks, MakeTheSameCalls) {
  const auto mixed = ranks(2, {"calls"});
  EXPECT_EQ(mixed[1].exit_code, 1);
  EXPECT_TRUE(has(mixed[1].text,
                  "rank 0 is in `broadcast` while rank 1 is in `barrier`; every rank must make the "
                  "same calls in the same order.\n"))
      << mixed[1].text;
  const auto left = ranks(2, {"leave"});
  EXPECT_EQ(left[0].exit_code, 0) << left[0].text;
  EXPECT_EQ(left[1].exit_code, 1);
  EXPECT_EQ(left[1].text,
            "barrier: rank 0 has left already; every rank must make the same calls.\n");
}

TEST_F(Ranks, ExchangeTextsOfAnyLengthAndMetrics) {
  const auto outcomes = ranks(3, {"exchange"});
  EXPECT_EQ(outcomes[0].text, "gather: rank 1 has the metrics y, but rank 0 has x.\n");
  EXPECT_EQ(outcomes[1].text, "gather: rank 0 has the metrics x, but rank 1 has y.\n");
}

class RanksOnDevices : public Launch {};

DEVICE_TEST(RanksOnDevices, AverageGradientsByWeight) {
  const auto outcomes = ranks(3, {"gradients", device().is_cuda() ? "cuda" : "cpu"});
  EXPECT_EQ(outcomes[0].text,
            "average_gradients: this rank has 5 parameters, and others have more or fewer; every "
            "rank must train the same model.\n");
}

class Torchrun : public Launch {
 protected:
  void SetUp() override {
    const std::vector<std::string> words = torchrun_words();
    if (words.size() > 1 && run({{{words[0], "-c", "import torch"}, {}}}).front().exit_code != 0)
      GTEST_SKIP() << "there is no torchrun, nor a python3 with torch";
    Launch::SetUp();
  }

  std::multiset<int> ids(const std::string& name, int ranks) const {
    std::multiset<int> ids;
    for (int rank = 0; rank < ranks; ++rank) {
      std::ifstream file(folder_ + "/ids." + name + "." + std::to_string(rank));
      for (int id = 0; file >> id;)
        ids.insert(id);
    }
    return ids;
  }
};

/// An epoch begun by one rank, continued by three, ended by two: each sample once.
TEST_F(Torchrun, GoesOnWithOtherNumbersOfRanks) {
  const auto leg = [&](int count, const char* steps, const char* name) {
    const std::vector<std::string> words = {program(), "worker", "steps", steps, name};
    const Outcome outcome = count == 1 ? run({{words, {}}}).front() : torchrun(count, words);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
    return ids(name, count);
  };
  std::multiset<int> all = leg(1, "4", "a");
  EXPECT_EQ(all.size(), 16u);
  all.merge(leg(3, "2", "b"));
  EXPECT_EQ(all.size(), 40u);
  all.merge(leg(2, "100", "c"));
  EXPECT_EQ(all.size(), static_cast<std::size_t>(kSamples));
  EXPECT_EQ(std::set<int>(all.begin(), all.end()).size(), static_cast<std::size_t>(kSamples));
}

/// Here torchrun itself may be first to end the other.
TEST_F(Torchrun, EndsWhenARankIsKilled) {
  const Outcome outcome = torchrun(2, {program(), "worker", "die", "kill", "data", "last"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_TRUE(has(outcome.text, "Signal 9 (SIGKILL)")) << outcome.text;
}

TEST_F(Torchrun, FitsToTheBitsOfOneProcess) {
  const Outcome alone = run({{{command(), "fit", "train.yaml", "-o", "one.yaml"}, {}}}).front();
  EXPECT_EQ(alone.exit_code, 0) << alone.text;
  const Outcome three =
      torchrun(3, {command(), "fit", "train.yaml", "-o", "three.yaml", "--partial", "part.json"});
  EXPECT_EQ(three.exit_code, 0) << three.text;
  EXPECT_FALSE(has(three.text, "note:")) << three.text;
  EXPECT_EQ(text_of(folder_ + "/three.yaml"), text_of(folder_ + "/one.yaml"));
  EXPECT_TRUE(has(text_of(folder_ + "/one.yaml"), "# Statistics of 62 samples"));
  for (const char* rank : {"0", "1", "2"})
    EXPECT_TRUE(fs::exists(folder_ + "/part.json." + rank + "-of-3"));
}

}  // namespace
}  // namespace forebay::test
