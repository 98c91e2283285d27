#include <forebay/array/parallel.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "kit/kit.h"

namespace forebay {
namespace {

using Ranges = std::vector<std::pair<std::int64_t, std::int64_t>>;
using Loop = void (*)(std::int64_t, std::int64_t, RangeBody);

Ranges ranges_of(Loop loop, std::int64_t count, std::int64_t grain) {
  std::mutex mutex;
  Ranges ranges;
  loop(count, grain, [&](std::int64_t begin, std::int64_t end) {
    const std::lock_guard lock(mutex);
    ranges.emplace_back(begin, end);
  });
  std::ranges::sort(ranges);
  return ranges;
}

TEST(Parallel, RangesCoverOnceAndAreNoSmallerThanTheGrain) {
  for (const std::int64_t count : {1, 2, 7, 64, 1000, 100'003}) {
    for (const std::int64_t grain : {0, 1, 3, 64, 2000}) {
      std::int64_t next = 0;
      for (const auto& [begin, end] : ranges_of(parallel_for, count, grain)) {
        ASSERT_EQ(begin, next);
        ASSERT_GE(end - begin, std::min(std::max<std::int64_t>(grain, 1), count));
        next = end;
      }
      ASSERT_EQ(next, count) << count << " by " << grain;
    }
  }
}

TEST(Parallel, BlocksAreFixed) {
  EXPECT_EQ(ranges_of(parallel_blocks, 10, 4), Ranges({{0, 4}, {4, 8}, {8, 10}}));
  EXPECT_EQ(ranges_of(parallel_blocks, 8, 4), Ranges({{0, 4}, {4, 8}}));
  EXPECT_EQ(ranges_of(parallel_blocks, 3, 4), Ranges({{0, 3}}));
  EXPECT_EQ(ranges_of(parallel_blocks, INT64_MAX, INT64_MAX), Ranges({{0, INT64_MAX}}));
}

TEST(Parallel, NothingForNothing) {
  for (const Loop loop : {parallel_for, parallel_blocks}) {
    EXPECT_TRUE(ranges_of(loop, 0, 4).empty());
    EXPECT_TRUE(ranges_of(loop, -1, 4).empty());
  }
}

TEST(Parallel, ResultsAreVisibleAfterwards) {
  // Plain memory in both directions: a thread sanitizer sees a missing order.
  std::vector<std::int64_t> input(10'000), output(10'000);
  for (int round = 0; round < 20; ++round) {
    std::iota(input.begin(), input.end(), round);
    parallel_for(10'000, 16, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        output[static_cast<std::size_t>(i)] = 2 * input[static_cast<std::size_t>(i)];
    });
    ASSERT_EQ(std::accumulate(output.begin(), output.end(), std::int64_t{0}),
              10'000 * 9'999 + 2 * round * 10'000);
  }
}

TEST(Parallel, NestedLoops) {
  std::atomic<std::int64_t> sum = 0;
  parallel_for(16, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      parallel_blocks(100, 10, [&](std::int64_t from, std::int64_t to) { sum += i * (to - from); });
    }
  });
  EXPECT_EQ(sum, 120 * 100);
}

TEST(Parallel, RethrowsTheException) {
  for (const Loop loop : {parallel_for, parallel_blocks}) {
    for (int round = 0; round < 20; ++round) {
      const auto action = [&] {
        loop(1000, 1, [](std::int64_t begin, std::int64_t end) {
          if (begin <= 500 && 500 < end) throw Error(ErrorKind::io, "row 500 is short");
        });
      };
      EXPECT_ERROR(action(), io, "row 500 is short");
    }
    EXPECT_EQ(ranges_of(loop, 1, 1), Ranges({{0, 1}}));  // still usable
  }
}

TEST(Parallel, Threads) { EXPECT_GE(parallel_threads(), 1); }

}  // namespace
}  // namespace forebay
