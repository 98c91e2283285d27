// What a bad sample gives: the rows of its batch, on every shard and however the pipeline runs.

#include "bad_samples_test.h"

#include <forebay/pipeline/order/declared.h>

namespace forebay::test {
namespace {

DEVICE_TEST(BadSamplesTest, ASkippedRowIsNotReal) {
  Pipeline pipeline = Pipeline::from_spec(spec(ErrorMode::skip, {7, 8, 19}));
  for (const Ids& want : {Ids{0, 1, 2, 3, 4, 5}, {6, 9, 10, 11}, {12, 13, 14, 15, 16, 17}, {18}}) {
    const auto batch = pipeline.next();
    EXPECT_EQ(real_ids(*batch), want);
    EXPECT_EQ(batch->rows(), batch->step() == 3 ? 2 : 6);
    EXPECT_TRUE(is_intact(*batch));
    for (const std::int64_t id : ids_of(*batch))
      EXPECT_FALSE(id == 7 || id == 8 || id == 19);
  }
  EXPECT_FALSE(pipeline.next());
}

DEVICE_TEST(BadSamplesTest, AReplacedRowIsThatOfAnotherSample) {
  Pipeline pipeline = Pipeline::from_spec(spec(ErrorMode::replace));
  ASSERT_TRUE(pipeline.next());
  const auto batch = pipeline.next();
  Ids ids = ids_of(*batch);
  EXPECT_EQ(batch->real_rows(), 6);
  EXPECT_TRUE(is_intact(*batch));
  for (const std::size_t row : {1u, 2u}) {
    EXPECT_FALSE(ids[row] == 7 || ids[row] == 8);
    ids[row] = static_cast<std::int64_t>(6 + row);
  }
  EXPECT_EQ(ids, (Ids{6, 7, 8, 9, 10, 11}));
}

/// The real samples of an epoch in their order, from the definition: by position, one at a time.
Ids by_definition(const Spec& spec, const std::set<std::int64_t>& bad, std::int64_t epoch) {
  Spec single = spec;
  single.batch_size = 1;
  Mistakes none;
  const Sampler sampler = declared_sampler(single, declared_order(single, none));
  Ids ids;
  for (std::int64_t cursor = 0; !sampler.ends_at(cursor); ++cursor) {
    const BatchPosition position{epoch, cursor, cursor};
    std::int64_t sample = 0;
    sampler.indices(position, &sample);
    if (spec.on_error.mode == ErrorMode::skip && bad.contains(sample)) continue;
    for (std::int64_t attempt = 0; bad.contains(sample); ++attempt)
      sample = sampler.substitute(position, 0, spec.seed, attempt);
    ids.push_back(sample);
  }
  return ids;
}

/// The same of pipelines, step by step and shard by shard.
Ids delivered(Spec spec, int shards, std::int64_t epochs) {
  std::vector<Pipeline> ranks;
  for (spec.shard = {0, shards}; spec.shard.shard_id < shards; ++spec.shard.shard_id)
    ranks.push_back(Pipeline::from_spec(spec));
  Ids ids;
  for (std::int64_t step = 0; step < epochs * ranks[0].steps_per_epoch(); ++step) {
    std::int64_t rows = 0;
    for (Pipeline& rank : ranks) {
      auto batch = rank.next();
      if (!batch) batch = rank.next();
      EXPECT_TRUE(is_intact(*batch));
      EXPECT_TRUE(rows == 0 || rows == batch->rows());
      rows = batch->rows();
      const Ids real = real_ids(*batch);
      ids.insert(ids.end(), real.begin(), real.end());
    }
  }
  return ids;
}

DEVICE_TEST(BadSamplesTest, TheSameSamplesHoweverThePipelineRuns) {
  const std::set<std::int64_t> bad = {0, 3, 11, 12, 13, 22, 40};
  for (const ErrorMode mode : {ErrorMode::skip, ErrorMode::replace}) {
    Spec asked = spec(mode, bad, 41);
    asked.shuffle = ShuffleMode::full;
    asked.seed = 3;
    Ids want;
    for (const std::int64_t epoch : {0, 1}) {
      const Ids ids = by_definition(asked, bad, epoch);
      want.insert(want.end(), ids.begin(), ids.end());
    }
    for (const std::int64_t batch_size : {1, 4, 50}) {
      for (const int shards : {1, 3}) {
        Spec way = asked;
        way.batch_size = batch_size;
        way.num_threads = shards;
        way.prefetch_queue_depth = shards;
        auto counting = source(41, bad);
        counting->grain_ = shards == 1 ? 7 : 1;
        way.source = counting;
        EXPECT_EQ(delivered(way, shards, 2), want) << batch_size << " x " << shards;
      }
    }
  }
}

// Substitutes must stay as they are: resumed runs hang on them.
TEST(BadSamples, SubstitutesStayAsTheyWere) {
  const Sampler sampler({.order = shuffled_order(1000, 7), .batch_size = 10});
  Ids got;
  for (const std::int64_t attempt : {0, 1, 99})
    got.push_back(sampler.substitute({2, 3, 30}, 4, 7, attempt));
  got.push_back(sampler.substitute({3, 3, 30}, 4, 7, 0));
  EXPECT_EQ(got, (Ids{300, 731, 354, 462}));
}

DEVICE_TEST(BadSamplesTest, AShardWhoseSamplesAreAllBadHasItsStep) {
  // Of 8 samples, in batches of 2 on two shards, the first batch of shard 0 and the last of shard 1.
  Spec asked = spec(ErrorMode::skip, {0, 1, 6, 7}, 8);
  asked.batch_size = 2;
  std::vector<std::int64_t> real;
  for (const int shard : {0, 1}) {
    asked.shard = {shard, 2};
    Pipeline pipeline = Pipeline::from_spec(asked);
    for (const Batch& batch : pipeline.epoch(0)) {
      EXPECT_EQ(batch.rows(), 2);
      EXPECT_TRUE(is_intact(batch));
      real.push_back(batch.real_rows());
    }
  }
  EXPECT_EQ(real, (Ids{0, 2, 2, 0}));
}

DEVICE_TEST(BadSamplesTest, ARowThatRepeatsASampleIsNotCounted) {
  // 3 samples on two shards: shard 1 repeats sample 0 in `fill`, and it is bad.
  Spec asked = spec(ErrorMode::skip, {0}, 3);
  asked.batch_size = 2;
  asked.last_batch_policy = LastBatchPolicy::fill;
  std::int64_t bad = 0;
  Ids real;
  for (const int shard : {0, 1}) {
    asked.shard = {shard, 2};
    Pipeline pipeline = Pipeline::from_spec(asked);
    const auto batch = pipeline.next();
    EXPECT_TRUE(is_intact(*batch));
    real.push_back(batch->real_rows());
    bad += pipeline.stats().bad_samples;
  }
  EXPECT_EQ(bad, 1);
  EXPECT_EQ(real, (Ids{1, 1}));
}

DEVICE_TEST(BadSamplesTest, SubstitutesAreOfThePartThatTakesPart) {
  Spec asked = spec(ErrorMode::replace, {0, 1, 2, 3}, 40);
  asked.split = Split{.part = SplitPart::train, .validation = 0.5};
  Spec other = asked;
  other.split->part = SplitPart::validation;
  other.source = std::make_shared<CountingSource>(40);
  std::set<std::int64_t> held_out;
  Pipeline validation = Pipeline::from_spec(other);
  for (const Batch& batch : validation.epoch(0))
    held_out.insert(batch.sample_ids().begin(), batch.sample_ids().end());
  Pipeline training = Pipeline::from_spec(asked);
  for (int epoch = 0; epoch < 20; ++epoch) {
    for (const Batch& batch : training.epoch(epoch)) {
      for (const std::int64_t id : ids_of(batch))
        EXPECT_FALSE(held_out.contains(id));
    }
  }
  EXPECT_GT(training.stats().bad_samples, 0);
}

DEVICE_TEST(BadSamplesTest, AMixKeepsItsProportions) {
  Spec asked = spec(ErrorMode::replace);
  asked.source = concat_source({{"a", source(30, {})}, {"b", source(10, {1, 2, 5, 6, 7})}}, "from");
  asked.sampling = {.mode = SamplingMode::mix, .samples = 40, .proportions = {{"a", 3}, {"b", 1}}};
  Pipeline pipeline = Pipeline::from_spec(asked);
  for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
    std::int64_t of_b = 0;
    for (const Batch& batch : pipeline.epoch(epoch)) {
      for (const std::int64_t from : integers(batch["from"]))
        of_b += from;
    }
    EXPECT_EQ(of_b, 10);
  }
  const Stats stats = pipeline.stats();
  EXPECT_EQ(stats.bad_samples, 15);
  ASSERT_EQ(stats.first_bad.size(), 5u);
  for (const BadSample& bad : stats.first_bad) {
    EXPECT_EQ(bad.source, "b");
    EXPECT_EQ(bad.reason, fmt::format("sample {0} of b: page {0} is gone", bad.index));
  }
}

DEVICE_TEST(BadSamplesTest, FailNamesTheSampleThatBreaksACheck) {
  Spec asked = counting_spec(device());
  asked.checks = {{.column = "label", .max = 18}};
  Pipeline pipeline = Pipeline::from_spec(asked);
  for (int batches = 0; batches < 3; ++batches)
    ASSERT_TRUE(pipeline.next());
  EXPECT_ERROR(
      pipeline.next(), invalid,
      "source counting, epoch 0, batch 3, sample 19: `label` is 19; it must be at most 18.");
}

DEVICE_TEST(BadSamplesTest, ASampleThatBreaksACheckIsBad) {
  Spec asked = counting_spec(device());
  asked.checks = {{.column = "x", .finite = true, .max = 172}};
  asked.on_error = {.mode = ErrorMode::skip, .max_count = 3};
  Pipeline pipeline = Pipeline::from_spec(asked);
  run_epochs(pipeline, 1);
  const Stats stats = pipeline.stats();
  EXPECT_EQ(stats.bad_samples, 2);
  ASSERT_EQ(stats.first_bad.size(), 2u);
  EXPECT_EQ(stats.first_bad[0].source, "counting");
  EXPECT_EQ(stats.first_bad[0].index, 18);
  EXPECT_EQ(stats.first_bad[0].reason, "`x`[0] is 180; it must be at most 172, finite");
}

DEVICE_TEST(BadSamplesTest, RandomOpsSeeTheSubstitute) {
  // The probe writes the ids that a step sees.
  Spec asked = spec(ErrorMode::skip);
  asked.stages.push_back(with(stage(probe_op()), {"x"}, {"ids"}));
  Pipeline pipeline = Pipeline::from_spec(asked);
  for (const Batch& batch : pipeline.epoch(0))
    EXPECT_EQ(integers(batch["ids"]), ids_of(batch));
}

}  // namespace
}  // namespace forebay::test
