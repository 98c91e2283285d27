// Mixes: which source each draw is of, and which of its samples.

#include <forebay/pipeline/order/mixture.h>

#include <cmath>
#include <map>
#include <random>

#include "kit/kit.h"
#include "statistics_test.h"

namespace forebay::test {
namespace {

using Indices = std::vector<std::int64_t>;
using Proportions = std::vector<double>;

/// Alike, far apart, golden, one that hides the others, and many at random.
std::vector<Proportions> all_proportions() {
  std::vector<Proportions> all = {{1},
                                  {0.7, 0.3},
                                  {1, 1},
                                  {1e9, 1},
                                  {1, 1, 1},
                                  {10, 435, 754},
                                  {0.5, 0.3, 0.2},
                                  {0.97, 0.01, 0.01, 0.01},
                                  {3, 1e-300, 2},
                                  Proportions(100, 0.01)};
  std::mt19937 random(3);
  for (int i = 0; i < 40; ++i) {
    Proportions some(2 + random() % 12);
    for (double& proportion : some)
      proportion = std::exp(std::uniform_real_distribution<>(0, i % 2 == 0 ? 3 : 9)(random));
    all.push_back(some);
  }
  for (Proportions golden = {1, 1}; golden.size() < 12; all.push_back(golden))
    golden.push_back(golden[golden.size() - 1] + golden[golden.size() - 2]);
  return all;
}

/// How far from its share a source may be.
double bound_of(std::size_t sources) { return sources <= 2 ? 0.5 : sources == 3 ? 1 : 2; }

double sum_of(const Proportions& proportions) {
  return std::accumulate(proportions.begin(), proportions.end(), 0.0);
}

TEST(Mixture, EverySourceHasItsShareOfEveryPrefix) {
  for (const Proportions& proportions : all_proportions()) {
    const Mixture mixture(proportions);
    Indices drawn(proportions.size());
    const double sum = sum_of(proportions), bound = bound_of(drawn.size()) + 1e-9;
    for (std::int64_t n = 0; n < 3000; ++n) {
      ASSERT_EQ(mixture.counts(n), drawn);
      const auto [source, number] = mixture.draw(n);
      ASSERT_EQ(number, drawn[static_cast<std::size_t>(source)]++);  // one after another
      for (std::size_t s = 0; s < drawn.size(); ++s) {
        ASSERT_LE(std::fabs(static_cast<double>(drawn[s]) -
                            static_cast<double>(n + 1) * proportions[s] / sum),
                  bound)
            << "source " << s << " of " << drawn.size() << " behind draw " << n;
      }
    }
  }
}

TEST(Mixture, HoldsAlsoFarAway) {
  // Integers are held exactly, so that the shares can be told in 128 bits.
  const Proportions proportions = {7, 3, 5, 11};
  const Mixture mixture(proportions);
  for (const std::int64_t begin :
       {std::int64_t{1} << 40, std::int64_t{1} << 61, Mixture::kMostDraws - 200}) {
    Indices drawn = mixture.counts(begin);
    for (std::int64_t n = begin; n < begin + 200; ++n) {
      const auto [source, number] = mixture.draw(n);
      ASSERT_EQ(number, drawn[static_cast<std::size_t>(source)]++);
      for (std::size_t s = 0; s < drawn.size(); ++s) {
        const auto off = static_cast<__int128>(drawn[s]) * 26 -
                         static_cast<__int128>(n + 1) * static_cast<int>(proportions[s]);
        ASSERT_LT(std::abs(static_cast<double>(off)), 2 * 26);
      }
    }
  }
}

TEST(Mixture, IsExactInEveryPeriodOfSmallIntegers) {
  const Mixture mixture(Proportions{7, 3});
  EXPECT_EQ(mixture.counts(10), (Indices{7, 3}));
  EXPECT_EQ(mixture.counts(10'000'000'000'000'000),
            (Indices{7'000'000'000'000'000, 3'000'000'000'000'000}));
  EXPECT_EQ(Mixture(Proportions{0.7, 0.3}).counts(1'000'000), (Indices{700'000, 300'000}));
}

TEST(Mixture, StaysAsItWas) {
  const auto first = [](const Proportions& proportions) {
    std::string sources;
    const Mixture mixture(proportions);
    for (std::int64_t n = 0; n < 20; ++n)
      sources += static_cast<char>('a' + mixture.draw(n).source);
    return sources;
  };
  EXPECT_EQ(first({0.7, 0.3}), "abaabaaabaabaabaaaba");
  EXPECT_EQ(first({0.5, 0.3, 0.2}), "bacabacababacabacaba");
  EXPECT_EQ(first({1, 1, 1, 1}), "acbdacbdacbdacbdacbd");
}

TEST(Mixture, EndsWhereSourcesAreExhausted) {
  std::mt19937 random(5);
  for (const Proportions& proportions : all_proportions()) {
    const double least = *std::min_element(proportions.begin(), proportions.end());
    if (least / sum_of(proportions) < 1e-4) continue;  // too long to count
    const Mixture mixture(proportions);
    Indices sizes(proportions.size());
    for (std::int64_t& size : sizes)
      size = static_cast<std::int64_t>(random() % 20 + 1);
    const std::int64_t first = mixture.until_first_exhausted(sizes);
    const std::int64_t all = mixture.until_all_exhausted(sizes);
    Indices drawn(sizes.size());
    for (std::int64_t n = 0; n <= all; ++n) {
      const auto whole = [&](std::size_t s) { return drawn[s] >= sizes[s]; };
      const auto again = [&](std::size_t s) { return drawn[s] > sizes[s]; };
      int wholes = 0, agains = 0;
      for (std::size_t s = 0; s < sizes.size(); ++s) {
        wholes += whole(s);
        agains += again(s);
      }
      // Shares, but where they are as good as the sizes.
      int less = 0, more = 0;
      for (std::size_t s = 0; s < sizes.size(); ++s) {
        const double share = static_cast<double>(n) * proportions[s] / sum_of(proportions);
        less += share < static_cast<double>(sizes[s]) - 1e-5;
        more += share > static_cast<double>(sizes[s]) + 1e-5;
      }
      EXPECT_EQ(agains == 0 && more == 0, n <= first) << n;
      EXPECT_EQ(wholes == static_cast<int>(sizes.size()) && less == 0, n >= all) << n;
      ++drawn[static_cast<std::size_t>(mixture.draw(n).source)];
    }
  }
}

TEST(Mixture, EndsEvenlyWhereProportionsDo) {
  const auto first = [](const Proportions& proportions, const Indices& sizes) {
    return Mixture(proportions).until_first_exhausted(sizes);
  };
  const auto all = [](const Proportions& proportions, const Indices& sizes) {
    return Mixture(proportions).until_all_exhausted(sizes);
  };
  EXPECT_EQ(first({1, 1}, {10, 30}), 20);
  EXPECT_EQ(first({1, 1}, {30, 10}), 20);
  EXPECT_EQ(all({1, 1}, {10, 30}), 60);
  EXPECT_EQ(all({1, 1}, {30, 10}), 60);
  EXPECT_EQ(first({0.7, 0.3}, {70, 1000}), 100);
  EXPECT_EQ(first({0.7, 0.3}, {1000, 30}), 100);
  EXPECT_EQ(all({0.7, 0.3}, {70, 3}), 100);
  EXPECT_EQ(all({0.3, 0.3, 0.4}, {30, 30, 40}), 100);
  EXPECT_EQ(first({0.3, 0.3, 0.4}, {30, 30, 40}), 100);
}

TEST(Mixture, RefusesWhatIsNoProportion) {
  EXPECT_ERROR(Mixture(Proportions{}), invalid, "a mix of no sources is asked for; give one.");
  EXPECT_ERROR(Mixture(Proportions{1, 0}), invalid,
               "a proportion is 0; it must be a finite number above 0.");
  EXPECT_ERROR(Mixture(Proportions{NAN}), invalid,
               "a proportion is nan; it must be a finite number above 0.");
  EXPECT_ERROR(Mixture(Proportions{1e300, 1e-300}).until_all_exhausted(Indices{99, 99}), invalid,
               "to go through every source takes more than 2^62 samples; give a number of "
               "`samples`, or other proportions.");
}

/// Parts with samples from 0, 100, 300 and 1000.
std::vector<MixPart> parts() {
  return {{"a", shuffled_order(7, 1), 0, 0.5},
          {"b", shuffled_order(40, 2), 100, 0.3},
          {"c", source_order(3), 300, 0.15},
          {"d", windowed_order(20, 4, 3), 1000, 0.05}};
}

TEST(MixedOrder, GoesThroughEachSourceOnceBeforeASampleComesAgain) {
  const OrderPtr order = mixed_order(parts(), 23);
  std::map<std::int64_t, Indices> drawn;  // by the first sample of the part
  for (std::int64_t epoch = 0; epoch < 60; ++epoch) {
    for (const std::int64_t sample : samples_of(*order, epoch)) {
      const std::int64_t first = sample >= 1000 ? 1000 : sample >= 300 ? 300 : sample / 100 * 100;
      drawn[first].push_back(sample - first);
    }
  }
  for (const MixPart& part : parts()) {
    const Indices& samples = drawn[part.first];
    EXPECT_NEAR(static_cast<double>(samples.size()), 60 * 23 * part.proportion, 2);
    // Pass after pass, to the sample, wherever epochs end.
    Indices passes;
    for (std::int64_t pass = 0; passes.size() < samples.size(); ++pass) {
      const Indices one = samples_of(*part.order, pass);
      EXPECT_EQ(sorted(one), count_up(part.order->length()));
      passes.insert(passes.end(), one.begin(), one.end());
    }
    passes.resize(samples.size());
    EXPECT_EQ(samples, passes) << part.name;
  }
}

TEST(MixedOrder, PositionsAreFunctionsOfTheirOwn) {
  const OrderPtr order = mixed_order(parts(), 50);
  expect_parts_fit(*order, 0);
  expect_parts_fit(*order, 7);
  EXPECT_NE(samples_of(*order, 0), samples_of(*order, 1));
  EXPECT_EQ(order->length(), 50);
  EXPECT_EQ(order->describe(),
            "mixed: 0.5 from a (shuffled; 3.57 passes an epoch), 0.3 from b (shuffled; 0.375 "
            "passes an epoch), 0.15 from c (as the source has them; 2.5 passes an epoch), 0.05 "
            "from d (shuffled in windows of 4; 0.125 passes an epoch)");
}

TEST(MixedOrder, TenBillionSamplesTakeNoMemory) {
  const std::int64_t size = 10'000'000'000;
  const OrderPtr order = mixed_order(
      {{"a", shuffled_order(size, 1), 0, 0.9}, {"b", shuffled_order(7 * size, 2), size, 0.1}},
      8 * size);
  const Indices samples = samples_of(*order, 3, 8 * size - 1000, 1000);
  const auto of_b = std::count_if(samples.begin(), samples.end(),
                                  [&](std::int64_t sample) { return sample >= size; });
  EXPECT_NEAR(static_cast<double>(of_b), 100, 1);
  EXPECT_GE(*std::min_element(samples.begin(), samples.end()), 0);
  EXPECT_LT(*std::max_element(samples.begin(), samples.end()), 8 * size);
}

TEST(MixedOrder, RefusesWhatItCannotDraw) {
  EXPECT_ERROR(mixed_order({{"a", source_order(0), 0, 1}}, 5), invalid,
               "source `a` has no samples to mix in; make its proportion 0.");
  EXPECT_ERROR(mixed_order({{"a", source_order(1), 0, 1}}, -1), invalid,
               "an epoch of -1 samples is asked for; it must be between 0 and 2^62.");
  EXPECT_ERROR(samples_of(*mixed_order(parts(), 1000), std::int64_t{1} << 60), invalid,
               "epoch 1152921504606846976 of a mix with epochs of 1000 samples is behind sample "
               "2^62 of it.");
}

}  // namespace
}  // namespace forebay::test
