// Subsets and splits.

#include <forebay/pipeline/order/members.h>

#include <map>
#include <set>

#include <forebay/pipeline/source.h>

#include "kit/kit.h"
#include "statistics_test.h"

namespace forebay::test {
namespace {

using Indices = std::vector<std::int64_t>;

Indices samples_of(const Members& members) {
  Indices samples = count_up(members.size());
  members.to_samples(samples);
  return samples;
}

Array column(const Indices& values) {
  return Array::from({static_cast<std::int64_t>(values.size())}, values);
}

Split part(SplitPart which, double validation, std::string by = "", std::uint64_t seed = 0) {
  return {.part = which, .validation = validation, .by = std::move(by), .seed = seed};
}

TEST(Subset, IsTheListedSamples) {
  const MembersPtr members = subset(column({7, 0, 7, 3}), 8);
  EXPECT_EQ(samples_of(*members), (Indices{7, 0, 7, 3}));
  EXPECT_EQ(members->describe(), "a subset of 4");
  const Array bytes = Array::from({6}, std::vector<std::uint8_t>{5, 9, 4, 9, 3, 9});
  EXPECT_EQ(samples_of(*subset(bytes.slice(0, 0, 6, 2), 8)), (Indices{5, 4, 3}));
  EXPECT_EQ(subset(column({}), 8)->size(), 0);
}

TEST(Subset, RefusesWhatIsNoIndex) {
  EXPECT_ERROR(subset(column({1, -2}), 8), invalid,
               "index 1 is -2; the source has 8 samples, so it must be in 0..7.");
  EXPECT_ERROR(subset(column({8}), 8), invalid,
               "index 0 is 8; the source has 8 samples, so it must be in 0..7.");
  EXPECT_ERROR(subset(kit::random({3}, Dtype::f32, 1), 8), invalid,
               "it is f32 (3,); it must be integers of shape (count,).");
  EXPECT_ERROR(subset(kit::random({3, 1}, Dtype::i64, 1), 8), invalid,
               "it is i64 (3, 1); it must be integers of shape (count,).");
}

class Splits : public testing::TestWithParam<double> {};

TEST_P(Splits, PartsAreDisjointCompleteAndOfTheirShare) {
  for (const std::int64_t size : {0, 1, 2, 3, 7, 10, 100, 1001}) {
    const MembersPtr train = split_part(part(SplitPart::train, GetParam()), size);
    const MembersPtr validation = split_part(part(SplitPart::validation, GetParam()), size);
    EXPECT_NEAR(static_cast<double>(validation->size()), static_cast<double>(size) * GetParam(), 1);
    Indices all = samples_of(*train);
    EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));
    const Indices other = samples_of(*validation);
    all.insert(all.end(), other.begin(), other.end());
    EXPECT_EQ(sorted(all), count_up(size));
  }
}

TEST_P(Splits, AppendedSamplesChangeNothing) {
  for (std::int64_t size = 0; size < 120; ++size) {
    Indices longer = samples_of(*split_part(part(SplitPart::validation, GetParam()), size + 1));
    std::erase(longer, size);
    EXPECT_EQ(longer, samples_of(*split_part(part(SplitPart::validation, GetParam()), size)));
  }
}
INSTANTIATE_TEST_SUITE_P(Shares, Splits,
                         testing::Values(0.01, 0.1, 0.2, 0.25, 1.0 / 3, 0.45, 0.5, 0.7, 0.95));

TEST(Splits, AreUniform) {
  std::vector<double> counts(20);
  const int draws = 20000;
  for (int seed = 0; seed < draws; ++seed) {
    for (const std::int64_t sample :
         samples_of(*split_part(part(SplitPart::validation, 0.2, "", 7000 + seed), 20)))
      ++counts[static_cast<std::size_t>(sample)];
  }
  EXPECT_LT(chi_square(counts, draws * 0.2), chi_square_bound(19));
}

TEST(Splits, StayAsTheyWere) {
  EXPECT_EQ(samples_of(*split_part(part(SplitPart::validation, 0.2), 30)),
            (Indices{4, 6, 10, 18, 23, 29}));
  EXPECT_EQ(samples_of(*split_part(part(SplitPart::validation, 0.2, "", 1), 30)),
            (Indices{2, 7, 12, 16, 23, 28}));
  const auto source = array_source({{"key", column(count_up(30))}});
  EXPECT_EQ(samples_of(*split_part(part(SplitPart::validation, 0.2, "key"), *source, nullptr)),
            (Indices{0, 17, 26, 28}));
}

TEST(Splits, RefuseAShareThatIsNone) {
  for (const double share : {0.0, 1.0, -0.5}) {
    EXPECT_ERROR(split_part(part(SplitPart::train, share), 10), invalid,
                 fmt::format("`validation` is {}; it must be above 0 and below 1.", share));
  }
}

/// 1000 samples of 100 patients, mixed, beside a column that is not the key.
SourcePtr patients(std::int64_t samples, std::int64_t of = 100) {
  Indices keys;
  for (std::int64_t i = 0; i < samples; ++i)
    keys.push_back(i * 37 % of);
  return array_source({{"x", kit::random({samples, 3}, Dtype::f32, 1)}, {"patient", column(keys)}});
}

TEST(SplitByKey, AllSamplesOfAKeyAreInOnePart) {
  const SourcePtr source = patients(1000);
  const MembersPtr validation =
      split_part(part(SplitPart::validation, 0.3, "patient"), *source, nullptr);
  const MembersPtr train = split_part(part(SplitPart::train, 0.3, "patient"), *source, nullptr);
  std::set<std::int64_t> held_out, seen;
  for (const std::int64_t sample : samples_of(*validation))
    held_out.insert(sample * 37 % 100);
  for (const std::int64_t sample : samples_of(*train))
    seen.insert(sample * 37 % 100);
  EXPECT_EQ(held_out.size() + seen.size(), 100u);
  EXPECT_NEAR(static_cast<double>(held_out.size()), 30, 15);
  EXPECT_EQ(validation->size(), static_cast<std::int64_t>(held_out.size()) * 10);
  EXPECT_EQ(train->size() + validation->size(), 1000);
  EXPECT_EQ(train->describe(), "the train part, 0.7 by `patient`");
  EXPECT_EQ(validation->describe(), "the validation part, 0.3 by `patient`");
}

TEST(SplitByKey, AppendedSamplesChangeNothing) {
  Indices before =
      samples_of(*split_part(part(SplitPart::train, 0.3, "patient"), *patients(1000), nullptr));
  Indices after =
      samples_of(*split_part(part(SplitPart::train, 0.3, "patient"), *patients(2000), nullptr));
  std::erase_if(after, [](std::int64_t sample) { return sample >= 1000; });
  EXPECT_EQ(after, before);
}

TEST(SplitByKey, FindsEachSampleOfALargeSplit) {
  const std::int64_t size = 100000;
  const SourcePtr source = array_source({{"key", column(count_up(size))}});
  const MembersPtr members = split_part(part(SplitPart::train, 0.9, "key"), *source, nullptr);
  EXPECT_NEAR(static_cast<double>(members->size()), 10000, 500);
  const Indices samples = samples_of(*members);
  EXPECT_TRUE(std::is_sorted(samples.begin(), samples.end()));
  EXPECT_EQ(std::set<std::int64_t>(samples.begin(), samples.end()).size(), samples.size());
  for (const std::int64_t number : {std::int64_t{0}, std::int64_t{511}, members->size() - 1}) {
    Indices one = {number};
    members->to_samples(one);
    EXPECT_EQ(one[0], samples[static_cast<std::size_t>(number)]);
  }
}

TEST(SplitByKey, WithinASubset) {
  const SourcePtr source = patients(1000);
  const MembersPtr all = subset(column({5, 105, 6, 106, 7, 107}), 1000);
  const MembersPtr train = split_part(part(SplitPart::train, 0.5, "patient"), *source, all.get());
  const Indices whole =
      samples_of(*split_part(part(SplitPart::train, 0.5, "patient"), *source, nullptr));
  Indices want;
  for (const std::int64_t sample : {5, 105, 6, 106, 7, 107}) {
    if (std::binary_search(whole.begin(), whole.end(), sample)) want.push_back(sample);
  }
  EXPECT_EQ(samples_of(*members_of_members(train, all)), want);
  EXPECT_EQ(members_of_members(train, all)->describe(),
            "the train part, 0.5 by `patient`, of a subset of 6");
}

TEST(SplitByKey, ReadsKeysOfAnyShapeFromAnySource) {
  // A source that knows only whole samples gives the same parts as one that reads a column alone.
  const Array keys = kit::random({200, 3}, Dtype::u8, 5, 0, 4);
  const SourcePtr arrays =
      array_source({{"x", kit::random({200, 2}, Dtype::f32, 1)}, {"key", keys}});
  const auto read = [&](std::int64_t index, std::span<const ArrayView> sample) {
    const std::int64_t indices[] = {index};
    arrays->read(indices, sample);
  };
  const SourcePtr calls = callback_source(200, arrays->columns(), read);
  const Split split = part(SplitPart::train, 0.4, "key");
  const MembersPtr members = split_part(split, *arrays, nullptr);
  EXPECT_EQ(samples_of(*members), samples_of(*split_part(split, *calls, nullptr)));
  std::map<std::string, std::set<bool>> sides;
  const Indices in = samples_of(*members);
  for (std::int64_t i = 0; i < 200; ++i) {
    sides[std::string(keys.as<char>() + 3 * i, 3)].insert(
        std::binary_search(in.begin(), in.end(), i));
  }
  for (const auto& [key, side] : sides)
    EXPECT_EQ(side.size(), 1u);
}

TEST(SplitByKey, RefusesAColumnThatIsNotThere) {
  EXPECT_ERROR(split_part(part(SplitPart::train, 0.3, "pat"), *patients(10), nullptr), invalid,
               "`by` is pat; it must be a column of the source: `x`, `patient`.");
}

}  // namespace
}  // namespace forebay::test
