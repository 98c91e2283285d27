#include <forebay/pipeline/order/permutation.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "kit/kit.h"
#include "statistics_test.h"

namespace forebay {
namespace {

std::vector<std::int64_t> order(const Permutation& permutation, std::int64_t count = -1) {
  std::vector<std::int64_t> result;
  if (count < 0) count = permutation.size();
  for (std::int64_t i = 0; i < count; ++i)
    result.push_back(permutation(i));
  return result;
}

class PermutationSizes : public testing::TestWithParam<std::int64_t> {};

TEST_P(PermutationSizes, TakesEachIndexOnce) {
  const std::int64_t size = GetParam();
  for (const std::uint64_t seed : {0ull, 7ull, 0xFFFFFFFFFFFFFFFFull}) {
    const Permutation permutation(size, seed, 3);
    std::vector<bool> seen(static_cast<std::size_t>(size));
    for (std::int64_t i = 0; i < size; ++i) {
      const std::int64_t index = permutation(i);
      ASSERT_GE(index, 0);
      ASSERT_LT(index, size);
      ASSERT_FALSE(seen[static_cast<std::size_t>(index)]) << "index " << index << " twice";
      seen[static_cast<std::size_t>(index)] = true;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Sizes, PermutationSizes,
                         testing::Values(0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65,
                                         100, 1000, 1023, 1024, 1025, 4097, 60000, (1 << 20) + 7));

TEST(Permutation, HoldsMoreThanTwoToTheThirtyTwo) {
  const std::int64_t size = (std::int64_t{1} << 40) + 3;
  const Permutation permutation(size, 7, 0);
  std::set<std::int64_t> seen;
  for (std::int64_t i = 0; i < 10000; ++i) {
    const std::int64_t index = permutation(size - 1 - i);
    ASSERT_GE(index, 0);
    ASSERT_LT(index, size);
    ASSERT_TRUE(seen.insert(index).second);
  }
  EXPECT_GT(*seen.rbegin(), size / 2);
}

// The order of training runs hangs on these: a change needs a new version of the state that is
// saved.
TEST(Permutation, StaysAsItWas) {
  EXPECT_EQ(order(Permutation(10, 7, 0)),
            (std::vector<std::int64_t>{4, 1, 7, 5, 2, 3, 8, 0, 9, 6}));
  EXPECT_EQ(order(Permutation(10, 7, 1)),
            (std::vector<std::int64_t>{5, 3, 7, 8, 6, 0, 2, 4, 9, 1}));
  EXPECT_EQ(order(Permutation(10, 8, 0)),
            (std::vector<std::int64_t>{0, 7, 5, 4, 8, 3, 9, 6, 2, 1}));
  EXPECT_EQ(order(Permutation(1000003, 0x123456789ABCDEF0, 5), 6),
            (std::vector<std::int64_t>{772381, 902777, 334833, 528557, 418433, 736442}));
  EXPECT_EQ(order(Permutation((std::int64_t{1} << 40) + 3, 1, 1), 3),
            (std::vector<std::int64_t>{675665057869, 161285645291, 17958913642}));
}

TEST(Permutation, SmallOnesAreUniformOverAllOrders) {
  for (const int size : {2, 3, 4, 5}) {
    std::map<std::vector<std::int64_t>, int> counts;
    const int draws = 24000;
    for (int draw = 0; draw < draws; ++draw)
      ++counts[order(Permutation(size, 1 + draw / 100, draw % 100))];
    double orders = 1;
    for (int i = 2; i <= size; ++i)
      orders *= i;
    const double expected = draws / orders;
    std::vector<double> seen(static_cast<std::size_t>(orders));
    std::transform(counts.begin(), counts.end(), seen.begin(), [](auto& each) { return each.second; });
    EXPECT_LT(test::chi_square(seen, expected), test::chi_square_bound(orders - 1))
        << "size " << size;
  }
}

TEST(Permutation, EachIndexIsAsLikelyAtEachPosition) {
  for (const int size : {6, 10, 16, 33}) {
    std::vector<double> counts(static_cast<std::size_t>(size * size));
    const int draws = 20000;
    for (int draw = 0; draw < draws; ++draw) {
      const Permutation permutation(size, 99, draw);
      for (int i = 0; i < size; ++i)
        ++counts[static_cast<std::size_t>(i * size + permutation(i))];
    }
    EXPECT_LT(test::chi_square(counts, static_cast<double>(draws) / size),
              test::chi_square_bound((size - 1) * (size - 1)))
        << "size " << size;
  }
}

TEST(Permutation, NeighboursAreUnrelated) {
  // Steps between neighbours of a random order of 0..n-1 are as often up as down, and on average
  // n/3 long.
  const std::int64_t size = 100000;
  const auto indices = order(Permutation(size, 5, 0));
  double length = 0;
  std::int64_t up = 0;
  for (std::size_t i = 1; i < indices.size(); ++i) {
    up += indices[i] > indices[i - 1];
    length += static_cast<double>(std::abs(indices[i] - indices[i - 1]));
  }
  EXPECT_NEAR(static_cast<double>(up) / size, 0.5, 0.01);
  EXPECT_NEAR(length / size / size, 1.0 / 3, 0.005);
}

TEST(Permutation, EachOrderedPairOfNeighboursIsAsLikely) {
  const int size = 12, draws = 20000;
  std::vector<double> counts(static_cast<std::size_t>(size * size));
  for (int draw = 0; draw < draws; ++draw) {
    const Permutation permutation(size, 5, draw);
    const int i = draw % (size - 1);
    ++counts[static_cast<std::size_t>(permutation(i) * size + permutation(i + 1))];
  }
  std::erase(counts, 0);  // an index beside itself
  ASSERT_EQ(counts.size(), static_cast<std::size_t>(size * (size - 1)));
  EXPECT_LT(test::chi_square(counts, static_cast<double>(draws) / (size * (size - 1))),
            test::chi_square_bound(size * (size - 1) - 1));
}

TEST(Permutation, StreamsOfAnEpochDiffer) {
  std::set<std::vector<std::int64_t>> orders;
  for (const std::int64_t stream : {std::int64_t{0}, std::int64_t{1}, std::int64_t{2},
                                    std::int64_t{1} << 32, std::int64_t{1} << 33})
    orders.insert(order(Permutation(50, 7, 0, stream)));
  EXPECT_EQ(orders.size(), 5u);
}

TEST(Permutation, RefusesANegativeSize) {
  EXPECT_ERROR(Permutation(-1, 0, 0), invalid,
               "a permutation cannot have size -1; it must be at least 0.");
}

}  // namespace
}  // namespace forebay
