// Several sources in one pipeline: put one after another, or mixed in proportions.

#include <algorithm>
#include <map>
#include <numeric>

#include <forebay/pipeline/fit.h>
#include <forebay/pipeline/order/mixture.h>
#include <forebay/pipeline/order/permutation.h>
#include <forebay/pipeline/order/random.h>

#include "fixture_test.h"

namespace forebay::test {
namespace {

using Indices = std::vector<std::int64_t>;

class MixTest : public PipelineTest {};

const Indices kSizes = {10, 25, 7};
const std::vector<double> kProportions = {0.5, 0.3, 0.2};

/// Sources a, b and c whose labels are their own indices, and `source`, the source's number.
Spec sources_spec(Device device) {
  std::vector<SourcePart> parts;
  for (std::size_t i = 0; i < kSizes.size(); ++i)
    parts.push_back(
        {std::string(1, static_cast<char>('a' + i)), std::make_shared<CountingSource>(kSizes[i])});
  Spec spec = counting_spec(device, concat_source(std::move(parts), "source"));
  spec.stages = {stage("clip", Clip{.min = 0})};
  return spec;
}

Spec mixed_spec(Device device, std::int64_t samples = 30) {
  Spec spec = sources_spec(device);
  spec.shuffle = ShuffleMode::full;
  spec.seed = 7;
  spec.sampling = {.mode = SamplingMode::mix,
                   .samples = samples,
                   .proportions = {{"c", 0.2}, {"a", 0.5}, {"b", 0.3}}};  // by name
  return spec;
}

int number_of_source(const Pipeline& pipeline, std::int64_t id) {
  return pipeline.spec().source->origin(id).source[0] - 'a';
}

/// The fields of a batch are those of its sample ids, in the right source.
void expect_intact(const Pipeline& pipeline, const Batch& batch) {
  const Indices labels = integers(batch["label"]), numbers = integers(batch["source"]);
  const Indices x = integers(batch["x"]);
  for (std::size_t row = 0; row < labels.size(); ++row) {
    const SampleOrigin origin = pipeline.spec().source->origin(batch.sample_ids()[row]);
    EXPECT_EQ(labels[row], origin.index);
    EXPECT_EQ(x[row * 3 + 2], 10 * labels[row] + 2);
    EXPECT_EQ(origin.source, std::string(1, static_cast<char>('a' + numbers[row])));
  }
}

/// The real rows' sample ids of a whole epoch.
Indices epoch_of(Pipeline& pipeline, std::int64_t epoch) {
  Indices ids;
  for (const Batch& batch : pipeline.epoch(epoch)) {
    expect_intact(pipeline, batch);
    const Indices rows = ids_of(batch);
    ids.insert(ids.end(), rows.begin(), rows.begin() + batch.real_rows());
  }
  return ids;
}

/// Draws begin..end-1 of source `s` of the mix with seed 7, from the permutations of its passes.
Indices draws_of(int s, std::int64_t begin, std::int64_t end) {
  const std::int64_t size = kSizes[static_cast<std::size_t>(s)];
  const std::int64_t first = std::accumulate(kSizes.begin(), kSizes.begin() + s, std::int64_t{0});
  Indices samples;
  for (std::int64_t draw = begin; draw < end; ++draw) {
    const Permutation pass(size, random_bits(7, Use::mix, s, 0), draw / size);
    samples.push_back(first + pass(draw % size));
  }
  return samples;
}

DEVICE_TEST(MixTest, WithoutProportionsEachSampleOfEachSourceComesOnce) {
  Spec spec = sources_spec(device());
  Pipeline plain = Pipeline::from_spec(spec);
  Indices all(42);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(epoch_of(plain, 0), all);
  spec.shuffle = ShuffleMode::full;
  Pipeline shuffled = Pipeline::from_spec(spec);
  Indices ids = epoch_of(shuffled, 0);
  EXPECT_FALSE(std::is_sorted(ids.begin(), ids.end()));
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(ids, all);
}

DEVICE_TEST(MixTest, EpochsHaveTheSamplesOfTheirPartOfEachSourcesPasses) {
  Pipeline pipeline = Pipeline::from_spec(mixed_spec(device()));
  EXPECT_EQ(pipeline.steps_per_epoch(), 5);
  const Mixture mixture(kProportions);
  for (std::int64_t epoch = 0; epoch < 7; ++epoch) {
    const Indices ids = epoch_of(pipeline, epoch);
    ASSERT_EQ(ids.size(), 30u);
    const Indices before = mixture.counts(30 * epoch), behind = mixture.counts(30 * (epoch + 1));
    for (int s = 0; s < 3; ++s) {
      Indices of_source;
      std::copy_if(ids.begin(), ids.end(), std::back_inserter(of_source),
                   [&](std::int64_t id) { return number_of_source(pipeline, id) == s; });
      EXPECT_EQ(of_source, draws_of(s, before[static_cast<std::size_t>(s)],
                                    behind[static_cast<std::size_t>(s)]));
    }
  }
}

DEVICE_TEST(MixTest, EveryPrefixOfARunHasTheProportionsWhateverCutsIt) {
  Spec spec = mixed_spec(device(), 29);
  for (const std::int64_t batch_size : {1, 4, 29}) {
    spec.batch_size = batch_size;
    Pipeline pipeline = Pipeline::from_spec(spec);
    std::vector<double> counts(3);
    double drawn = 0;
    for (std::int64_t epoch = 0; epoch < 5; ++epoch) {
      for (const std::int64_t id : epoch_of(pipeline, epoch)) {
        ++counts[static_cast<std::size_t>(number_of_source(pipeline, id))];
        ++drawn;
        for (std::size_t s = 0; s < 3; ++s)
          EXPECT_LT(std::abs(counts[s] - drawn * kProportions[s]), 1);
      }
    }
  }
}

DEVICE_TEST(MixTest, GoesOnFromEveryStepOnOtherNumbersOfShards) {
  const Spec spec = mixed_spec(device(), 31);
  Pipeline straight = Pipeline::from_spec(spec);
  Indices want;
  for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
    const Indices ids = epoch_of(straight, epoch);
    want.insert(want.end(), ids.begin(), ids.end());
  }
  Pipeline interrupted = Pipeline::from_spec(spec);
  for (int steps = 0; steps < 12; ++steps) {
    const BatchPosition position = interrupted.position();
    for (const int count : {1, 2, 3}) {
      std::vector<Pipeline> shards;
      for (int id = 0; id < count; ++id) {
        Spec shard = spec;
        shard.batch_size = 5 - count;
        shard.shard = {id, count};
        shards.push_back(Pipeline::from_spec(shard));
        shards.back().restore(interrupted.state());
      }
      Indices got(want.begin(), want.begin() + position.epoch * 31 + position.cursor);
      while (got.size() < want.size()) {
        for (Pipeline& shard : shards) {
          const auto batch = shard.next();
          if (!batch) continue;
          expect_intact(shard, *batch);
          const Indices rows = ids_of(*batch);
          got.insert(got.end(), rows.begin(), rows.begin() + batch->real_rows());
        }
      }
      EXPECT_EQ(got, want) << "behind " << steps << " steps, with " << count << " shards";
    }
    while (!interrupted.next()) {
    }  // an epoch's end is no batch
  }
}

DEVICE_TEST(MixTest, AnEpochEndsWhereItWasAskedTo) {
  Spec spec = mixed_spec(device(), 0);
  const auto samples_of = [&](const Spec& s) { return plan_of(s)->sampler->order().length(); };
  EXPECT_EQ(samples_of(spec), 42);  // as many as there are
  spec.sampling.stopping = StoppingStrategy::first_exhausted;
  const std::int64_t first = samples_of(spec);
  EXPECT_NEAR(static_cast<double>(first), 10 / 0.5, 2);
  Pipeline pipeline = Pipeline::from_spec(spec);
  Indices ids = epoch_of(pipeline, 0);
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(std::adjacent_find(ids.begin(), ids.end()), ids.end());  // none comes twice
  spec.sampling.stopping = StoppingStrategy::all_exhausted;
  EXPECT_NEAR(static_cast<double>(samples_of(spec)), 25 / 0.3, 4);
  Pipeline longer = Pipeline::from_spec(spec);
  ids = epoch_of(longer, 0);
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  EXPECT_EQ(ids.size(), 42u);  // every sample comes
}

DEVICE_TEST(MixTest, LastBatchesAndWindowsAreThoseOfOtherOrders) {
  Spec spec = mixed_spec(device(), 32);
  spec.shuffle = ShuffleMode::window;
  spec.shuffle_window = 4;
  Pipeline partial = Pipeline::from_spec(spec);
  const Indices whole = epoch_of(partial, 1);
  EXPECT_EQ(whole.size(), 32u);
  spec.last_batch_policy = LastBatchPolicy::drop;
  Pipeline drop = Pipeline::from_spec(spec);
  EXPECT_EQ(epoch_of(drop, 1), Indices(whole.begin(), whole.begin() + 30));
  spec.last_batch_policy = LastBatchPolicy::fill;
  Pipeline fill = Pipeline::from_spec(spec);
  Indices rows;
  for (const Batch& batch : fill.epoch(1)) {
    const Indices ids = ids_of(batch);
    rows.insert(rows.end(), ids.begin(), ids.end());
  }
  Indices filled = whole;
  filled.insert(filled.end(), whole.begin(), whole.begin() + 4);
  EXPECT_EQ(rows, filled);
}

DEVICE_TEST(MixTest, ASplitHasThePartsOfEachSourceWhereverItIsUsed) {
  const Split split{.part = SplitPart::validation, .validation = 0.3};
  Indices want;
  std::int64_t first = 0;
  for (const std::int64_t size : kSizes) {
    Spec alone = counting_spec(device(), std::make_shared<CountingSource>(size));
    alone.split = split;
    Pipeline pipeline = Pipeline::from_spec(alone);
    for (const Batch& batch : pipeline.epoch(0)) {
      for (const std::int64_t id : ids_of(batch))
        want.push_back(first + id);
    }
    first += size;
  }
  Spec spec = sources_spec(device());
  spec.split = split;
  Pipeline concat = Pipeline::from_spec(spec);
  EXPECT_EQ(epoch_of(concat, 0), want);
  spec = mixed_spec(device(), 200);
  spec.split = split;
  Pipeline mix = Pipeline::from_spec(spec);
  Indices drawn = epoch_of(mix, 0);
  std::sort(drawn.begin(), drawn.end());
  drawn.erase(std::unique(drawn.begin(), drawn.end()), drawn.end());
  EXPECT_EQ(drawn, want);
  spec.split->part = SplitPart::train;
  Pipeline train = Pipeline::from_spec(spec);
  for (const std::int64_t id : epoch_of(train, 0))
    EXPECT_FALSE(std::binary_search(want.begin(), want.end(), id));
}

DEVICE_TEST(MixTest, ASubsetIsOfTheSamplesOfAll) {
  Spec spec = sources_spec(device());
  const Indices listed = {40, 3, 11, 35, 2, 12};
  spec.subset = Array::from({6}, listed);
  Pipeline concat = Pipeline::from_spec(spec);
  EXPECT_EQ(epoch_of(concat, 0), listed);
  spec.sampling = {.mode = SamplingMode::mix, .proportions = {{"a", 1}, {"b", 1}, {"c", 1}}};
  Pipeline mix = Pipeline::from_spec(spec);
  Indices ids = epoch_of(mix, 0);
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(ids, (Indices{2, 3, 11, 12, 35, 40}));
}

DEVICE_TEST(MixTest, ASourceCanBeLeftOut) {
  Spec spec = mixed_spec(device(), 50);
  spec.sampling.proportions = {{"a", 2}, {"b", 0}, {"c", 1}};
  Pipeline pipeline = Pipeline::from_spec(spec);
  std::map<int, int> counts;
  for (const std::int64_t id : epoch_of(pipeline, 0))
    ++counts[number_of_source(pipeline, id)];
  EXPECT_EQ(counts, (std::map<int, int>{{0, 33}, {2, 17}}));
}

DEVICE_TEST(MixTest, BadSamplesAreListedWithTheirSource) {
  Spec spec = mixed_spec(device(), 42);
  std::vector<SourcePart> parts(spec.source->parts().begin(), spec.source->parts().end());
  auto bad = std::make_shared<CountingSource>(kSizes[1]);
  bad->on_read_ = [](std::span<const std::int64_t> indices) {
    if (std::count(indices.begin(), indices.end(), 3) > 0) throw std::runtime_error("torn");
  };
  parts[1].source = bad;
  spec.source = concat_source(std::move(parts), "source");
  spec.on_error = {.mode = ErrorMode::replace, .max_share = 1};
  Pipeline pipeline = Pipeline::from_spec(spec);
  for (std::int64_t epoch = 0; epoch < 3; ++epoch)
    EXPECT_EQ(epoch_of(pipeline, epoch).size(), 42u);
  const Stats stats = pipeline.stats();
  ASSERT_EQ(stats.first_bad.size(), 1u);
  EXPECT_EQ(stats.first_bad[0].source, "b");
  EXPECT_EQ(stats.first_bad[0].index, 3);
}

TEST(MixPlan, SaysSourcesSharesAndPasses) {
  const std::string text = to_string(*plan_of(mixed_spec(Device::cpu(), 100)));
  const auto has = [&](const std::string& part) { return text.find(part) != std::string::npos; };
  EXPECT_TRUE(
      has("3 sources, 42 samples\n"
          "  a: counting, 10 samples from 0 on\n"
          "  b: counting, 25 samples from 10 on\n"
          "  c: counting, 7 samples from 35 on\n"))
      << text;
  EXPECT_TRUE(
      has("  100 samples mixed: 0.5 from a (shuffled; 5 passes an epoch), 0.3 from b "
          "(shuffled; 1.2 passes an epoch), 0.2 from c (shuffled; 2.86 passes an epoch)\n"))
      << text;
}

TEST(MixPlan, FitCountsEverySampleOnce) {
  Spec spec = mixed_spec(Device::cpu(), 5);
  spec.stages.clear();
  const FitReport report = finish(fit(spec, {.fields = {"source"}}));
  EXPECT_EQ(report.samples, 42);
  EXPECT_EQ(report.fields[0].statistics[0].mean, (25 * 1 + 7 * 2) / 42.0);
}

TEST(MixPlan, RefusesProportionsThatDoNotFit) {
  const auto wrong = [](auto change) {
    Spec spec = mixed_spec(Device::cpu());
    change(spec);
    return kit::caught([&] { plan_of(spec); }).text;
  };
  const auto proportions = [&](std::vector<std::pair<std::string, double>> given) {
    return wrong([&](Spec& spec) { spec.sampling.proportions = given; });
  };
  EXPECT_EQ(proportions({{"a", 1}, {"b", 1}}),
            "sampling: `proportions` has no `c`; give every source one, 0 to leave it out.");
  EXPECT_EQ(proportions({{"a", 1}, {"b", 1}, {"cc", 1}}),
            "sampling: `proportions` has `cc`, which is no source; there are `a`, `b`, `c`. Did "
            "you mean `c`?");
  EXPECT_EQ(proportions({{"a", 1}, {"b", -1}, {"c", 1}}),
            "sampling: the proportion of `b` is -1; it must be a finite number of at least 0.");
  EXPECT_EQ(proportions({{"a", 0}, {"b", 0}, {"c", 0}}),
            "sampling: no proportion is above 0; make one.");
  EXPECT_EQ(wrong([](Spec& spec) { spec.subset = Array::from({1}, Indices{3}); }),
            "sampling: source `b` has no samples to mix in; make its proportion 0.");
  EXPECT_EQ(wrong([](Spec& spec) { spec.source = std::make_shared<CountingSource>(20); }),
            "sampling: mode mix draws from several sources, but there is one; make it one of type "
            "concat.");
  EXPECT_EQ(wrong([](Spec& spec) { spec.sampling.mode = SamplingMode::replacement; }),
            "sampling: `proportions` are for mode mix; leave them out.");
  EXPECT_EQ(wrong([](Spec& spec) { spec.sampling.stopping = StoppingStrategy::first_exhausted; }),
            "sampling: `samples` is 30, but an epoch ends at first_exhausted; leave one of them "
            "out.");
  EXPECT_EQ(wrong([](Spec& spec) {
              spec.sampling = {.mode = SamplingMode::replacement,
                               .stopping = StoppingStrategy::all_exhausted};
              spec.shuffle = ShuffleMode::none;
            }),
            "sampling: `samples` is all_exhausted, which is for mode mix; give a number.");
}

}  // namespace
}  // namespace forebay::test
