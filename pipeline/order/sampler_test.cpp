// How an order is cut into batches, steps and shards.

#include <forebay/pipeline/order/sampler.h>

#include <cstdlib>
#include <map>

#include "kit/kit.h"
#include "statistics_test.h"

namespace forebay::test {
namespace {

using Indices = std::vector<std::int64_t>;
using Batches = std::vector<Indices>;
constexpr LastBatchPolicy kPolicies[] = {LastBatchPolicy::partial, LastBatchPolicy::drop,
                                         LastBatchPolicy::fill};

Sampler in_order(std::int64_t size, std::int64_t batch_size,
                 LastBatchPolicy policy = LastBatchPolicy::partial, Shard shard = {}) {
  return Sampler({.order = source_order(size),
                  .batch_size = batch_size,
                  .last_batch = policy,
                  .shard = shard});
}

/// Batches from `position` to the end of the epoch; `real` without the rows that repeat.
Batches batches_from(const Sampler& sampler, BatchPosition position, bool real = false) {
  Batches result;
  for (; !sampler.ends_at(position.cursor); position = sampler.after(position)) {
    auto& batch = result.emplace_back(static_cast<std::size_t>(sampler.rows(position.cursor)));
    sampler.indices(position, batch.data());
    if (real) batch.resize(static_cast<std::size_t>(sampler.real_rows(position.cursor)));
  }
  return result;
}
Batches epoch_of(const Sampler& sampler, std::int64_t epoch, bool real = false) {
  return batches_from(sampler, {epoch}, real);
}

TEST(Sampler, LastBatch) {
  EXPECT_EQ(epoch_of(in_order(5, 2), 0), (Batches{{0, 1}, {2, 3}, {4}}));
  EXPECT_EQ(epoch_of(in_order(5, 2, LastBatchPolicy::drop), 0), (Batches{{0, 1}, {2, 3}}));
  EXPECT_EQ(epoch_of(in_order(5, 3, LastBatchPolicy::fill), 0), (Batches{{0, 1, 2}, {3, 4, 0}}));
  EXPECT_EQ(epoch_of(in_order(5, 3, LastBatchPolicy::fill), 0, true), (Batches{{0, 1, 2}, {3, 4}}));
  EXPECT_EQ(epoch_of(in_order(2, 5, LastBatchPolicy::fill), 0), (Batches{{0, 1, 0, 1, 0}}));
  EXPECT_EQ(epoch_of(in_order(2, 5, LastBatchPolicy::drop), 0), Batches{});
  EXPECT_EQ(epoch_of(in_order(2, 5), 0), (Batches{{0, 1}}));
  for (const LastBatchPolicy policy : kPolicies) {
    EXPECT_EQ(epoch_of(in_order(0, 5, policy), 0), Batches{});
    EXPECT_EQ(epoch_of(in_order(4, 2, policy), 0), (Batches{{0, 1}, {2, 3}}));
  }
}

TEST(Sampler, FillsFromTheStartOfTheShuffledOrder) {
  const Sampler sampler(
      {.order = shuffled_order(5, 1), .batch_size = 3, .last_batch = LastBatchPolicy::fill});
  const auto batches = epoch_of(sampler, 2);
  ASSERT_EQ(batches.size(), 2u);
  EXPECT_EQ(batches[1][2], batches[0][0]);
}

TEST(Sampler, ShardsDealOutTheRestEvenly) {
  // 14 samples in global batches of 6: the last two go to the first two of three shards.
  const auto shard = [](int id, LastBatchPolicy policy, bool real = false) {
    return epoch_of(in_order(14, 2, policy, {id, 3}), 0, real);
  };
  EXPECT_EQ(shard(0, LastBatchPolicy::partial), (Batches{{0, 1}, {6, 7}, {12}}));
  EXPECT_EQ(shard(1, LastBatchPolicy::partial), (Batches{{2, 3}, {8, 9}, {13}}));
  EXPECT_EQ(shard(2, LastBatchPolicy::partial), (Batches{{4, 5}, {10, 11}, {0}}));
  EXPECT_EQ(shard(2, LastBatchPolicy::partial, true), (Batches{{4, 5}, {10, 11}, {}}));
  EXPECT_EQ(shard(2, LastBatchPolicy::drop), (Batches{{4, 5}, {10, 11}}));
  EXPECT_EQ(shard(0, LastBatchPolicy::fill), (Batches{{0, 1}, {6, 7}, {12, 13}}));
  EXPECT_EQ(shard(2, LastBatchPolicy::fill), (Batches{{4, 5}, {10, 11}, {2, 3}}));
  EXPECT_EQ(shard(1, LastBatchPolicy::fill, true), (Batches{{2, 3}, {8, 9}, {}}));
}

/// Every size, batch size, number of shards and policy of a small range.
template <class F>
void for_each_case(F&& body) {
  for (std::int64_t size = 0; size < 26; ++size) {
    for (const std::int64_t batch_size : {1, 2, 3, 4, 7}) {
      for (const int shards : {1, 2, 3, 5}) {
        for (const LastBatchPolicy policy : kPolicies) {
          SCOPED_TRACE(fmt::format("{} samples, batches of {}, {} shards, policy {}", size,
                                   batch_size, shards, static_cast<int>(policy)));
          body(size, batch_size, shards, policy);
        }
      }
    }
  }
}

TEST(Sampler, ShardsHaveTheStepsRowsAndSamplesOfOne) {
  for_each_case([](std::int64_t size, std::int64_t batch_size, int shards, LastBatchPolicy policy) {
    const Sampler one({.order = shuffled_order(size, 4),
                       .batch_size = batch_size * shards,
                       .last_batch = policy});
    const Batches want = epoch_of(one, 3, true);
    ASSERT_EQ(one.steps_per_epoch(), static_cast<std::int64_t>(want.size()));
    Batches joined(want.size());
    std::vector<std::size_t> rows;
    for (int shard = 0; shard < shards; ++shard) {
      const Sampler sampler({.order = shuffled_order(size, 4),
                             .batch_size = batch_size,
                             .last_batch = policy,
                             .shard = {shard, shards}});
      ASSERT_EQ(sampler.steps_per_epoch(), one.steps_per_epoch());
      const Batches all = epoch_of(sampler, 3), real = epoch_of(sampler, 3, true);
      ASSERT_EQ(all.size(), want.size());
      for (std::size_t step = 0; step < all.size(); ++step) {
        if (shard == 0) rows.push_back(all[step].size());
        ASSERT_EQ(all[step].size(), rows[step]);  // the same on every shard
        ASSERT_GE(all[step].size(), 1u);
        const bool whole = step + 1 < all.size() || policy != LastBatchPolicy::partial;
        ASSERT_TRUE(!whole || static_cast<std::int64_t>(all[step].size()) == batch_size);
        ASSERT_TRUE(policy != LastBatchPolicy::partial ||
                    all[step].size() <= real[step].size() + 1);
        joined[step].insert(joined[step].end(), real[step].begin(), real[step].end());
      }
      const std::int64_t tail = sampler.tail_rows();
      ASSERT_EQ(tail, all.empty() || static_cast<std::int64_t>(rows.back()) == batch_size
                          ? 0
                          : static_cast<std::int64_t>(rows.back()));
    }
    EXPECT_EQ(joined, want);
  });
}

TEST(Sampler, AnEpochGoesOnFromAnyCursorWithOtherShards) {
  // Three steps in one way, the rest in another: each sample once, as the first order has them.
  for_each_case([](std::int64_t size, std::int64_t batch_size, int shards, LastBatchPolicy policy) {
    const OrderPtr order = shuffled_order(size, 4);
    const Sampler first({.order = order, .batch_size = 2, .last_batch = policy, .shard = {0, 2}});
    BatchPosition position{5};
    for (int step = 0; step < 3 && !first.ends_at(position.cursor); ++step)
      position = first.after(position);
    Indices rest;
    for (int shard = 0; shard < shards; ++shard) {
      const Sampler sampler({.order = order,
                             .batch_size = batch_size,
                             .last_batch = policy,
                             .shard = {shard, shards}});
      for (const Indices& batch : batches_from(sampler, sampler.at(5, position.cursor), true))
        rest.insert(rest.end(), batch.begin(), batch.end());
    }
    const std::int64_t left = size - position.cursor;
    const std::int64_t dropped = policy == LastBatchPolicy::drop ? left % (batch_size * shards) : 0;
    EXPECT_EQ(sorted(rest), sorted(samples_of(*order, 5, position.cursor, left - dropped)));
  });
}

/// RANK and WORLD_SIZE for one test.
class Environment : public testing::Test {
 protected:
  void TearDown() override {
    unsetenv("RANK");
    unsetenv("WORLD_SIZE");
  }
  static void set(const char* rank, const char* world) {
    rank != nullptr ? setenv("RANK", rank, 1) : unsetenv("RANK");
    world != nullptr ? setenv("WORLD_SIZE", world, 1) : unsetenv("WORLD_SIZE");
  }
};

TEST_F(Environment, SaysWhichShardThisIs) {
  set(nullptr, nullptr);
  EXPECT_EQ(Shard::from_environment(), (Shard{0, 1}));
  set("2", "3");
  EXPECT_EQ(Shard::from_environment(), (Shard{2, 3}));
}

TEST_F(Environment, IsRefusedWhenItMakesNoSense) {
  set("2", nullptr);
  EXPECT_ERROR(Shard::from_environment(), invalid,
               "the environment variable RANK is set, but WORLD_SIZE is not; set both, as torchrun "
               "does.");
  set(nullptr, "3");
  EXPECT_ERROR(Shard::from_environment(), invalid,
               "the environment variable WORLD_SIZE is set, but RANK is not; set both, as torchrun "
               "does.");
  set("3", "3");
  EXPECT_ERROR(Shard::from_environment(), invalid,
               "the environment variable RANK is 3 but WORLD_SIZE is 3; it must be below.");
  set("a", "3");
  EXPECT_ERROR(Shard::from_environment(), invalid,
               "the environment variable RANK is `a`; it must be an integer of at least 0.");
  set("0", "0");
  EXPECT_ERROR(Shard::from_environment(), invalid,
               "the environment variable WORLD_SIZE is `0`; it must be an integer of at least 1.");
}

}  // namespace
}  // namespace forebay::test
