// What a bad sample gives: the rows of its batch, on every shard and however the pipeline runs; where
// the run ends; what is counted and listed; and what a resumed run knows of it.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include <forebay/array/require.h>
#include <forebay/pipeline/order/declared.h>

#include "fixture_test.h"

namespace forebay::test {
namespace {

using Ids = std::vector<std::int64_t>;

class BadSamplesTest : public PipelineTest {
 protected:
  /// Samples 0..size-1, of which those in `bad` cannot be read.
  static std::shared_ptr<CountingSource> source(std::int64_t size, std::set<std::int64_t> bad) {
    auto source = std::make_shared<CountingSource>(size);
    source->on_read_ = [bad = std::move(bad)](std::span<const std::int64_t> indices) {
      for (const std::int64_t index : indices) {
        if (bad.contains(index)) fail(ErrorKind::io, "page {} is gone", index);
      }
    };
    return source;
  }
  Spec spec(ErrorMode mode, std::set<std::int64_t> bad = {7, 8}, std::int64_t size = 20) const {
    Spec spec = counting_spec(device(), source(size, std::move(bad)));
    spec.on_error = {.mode = mode, .max_share = 1};
    return spec;
  }
};

/// The text of what `action` throws, or nothing.
std::string failure_of(const std::function<void()>& action) {
  try {
    action();
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

Ids real_ids(const Batch& batch) {
  return {batch.sample_ids().begin(), batch.sample_ids().begin() + batch.real_rows()};
}

/// Takes batches to the end of `epochs` epochs.
void run_epochs(Pipeline& pipeline, std::int64_t epochs) {
  for (std::int64_t epoch = pipeline.position().epoch; epoch < epochs; ++epoch) {
    for (const Batch& batch : pipeline.epoch(epoch))
      EXPECT_TRUE(is_intact(batch));
  }
}

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);)
    lines.push_back(line);
  return lines;
}

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

DEVICE_TEST(BadSamplesTest, FailNamesTheSampleThatBreaksACheck) {
  Spec asked = counting_spec(device());
  asked.checks = {{.column = "label", .max = 6}};
  Pipeline pipeline = Pipeline::from_spec(asked);
  ASSERT_TRUE(pipeline.next());
  EXPECT_ERROR(pipeline.next(), invalid,
               "source counting, epoch 0, batch 1, sample 7: `label` is 7; it must be at most 6.");
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

DEVICE_TEST(BadSamplesTest, MoreThanTheLimitEndsTheRun) {
  const auto ends = [&](OnError on_error) {
    Spec asked = spec(ErrorMode::skip, {1, 7, 8});
    asked.on_error = std::move(on_error);
    Pipeline pipeline = Pipeline::from_spec(asked);
    std::string text;
    for (int taken = 0;; ++taken) {
      text = failure_of([&] { EXPECT_TRUE(pipeline.next()); });
      if (!text.empty() || taken == 3) break;
    }
    if (text.empty()) return text;
    EXPECT_ERROR(pipeline.next(), io, text);
    return text;
  };
  const std::string last = "the last, counting sample 8: page 8 is gone";
  const std::string begin = "epoch 0, batch 1: 3 samples of this epoch are bad, more than the ";
  const std::string end = " that it may have (`on_error`); ";
  EXPECT_EQ(ends({.mode = ErrorMode::skip}), begin + "2" + end + last);  // a tenth
  EXPECT_EQ(ends({.mode = ErrorMode::skip, .max_count = 2}), begin + "2" + end + last);
  EXPECT_EQ(ends({.mode = ErrorMode::replace, .max_count = 2}), begin + "2" + end + last);
  EXPECT_EQ(ends({.mode = ErrorMode::skip, .max_count = 1}), begin + "1" + end + last);
  EXPECT_EQ(ends({.mode = ErrorMode::skip, .max_share = 0.149}), begin + "2" + end + last);
  EXPECT_EQ(ends({.mode = ErrorMode::skip, .max_count = 3, .max_share = 0.1}),
            begin + "2" + end + last);
  EXPECT_EQ(ends({.mode = ErrorMode::skip, .max_count = 3}), "");
  EXPECT_EQ(ends({.mode = ErrorMode::skip, .max_share = 0.15}), "");
}

DEVICE_TEST(BadSamplesTest, EachEpochAndShardHasTheLimitAnew) {
  Spec asked = spec(ErrorMode::skip, {1, 7, 8, 19});
  asked.on_error = {.mode = ErrorMode::skip, .max_count = 4};
  Pipeline pipeline = Pipeline::from_spec(asked);
  run_epochs(pipeline, 3);
  EXPECT_EQ(pipeline.stats().bad_samples, 12);
  EXPECT_EQ(pipeline.stats().first_bad.size(), 4u);  // each once
  asked.on_error.max_count = 2;
  asked.batch_size = 10;
  for (asked.shard = {0, 2}; asked.shard.shard_id < 2; ++asked.shard.shard_id) {
    Pipeline shard = Pipeline::from_spec(asked);
    EXPECT_EQ(failure_of([&] { run_epochs(shard, 1); }).empty(), asked.shard.shard_id == 1);
  }
}

DEVICE_TEST(BadSamplesTest, WhenAllAreBadTheRunEnds) {
  for (const ErrorMode mode : {ErrorMode::skip, ErrorMode::replace}) {
    Spec asked = spec(mode);
    auto gone = std::make_shared<CountingSource>(20);
    gone->on_read_ = [](auto) { throw std::runtime_error("the disk is gone"); };
    asked.source = gone;
    Pipeline pipeline = Pipeline::from_spec(asked);
    const std::string text = failure_of([&] { pipeline.next(); });
    const std::string begin =
        "epoch 0, batch 0: 100 samples were drawn in the place of one that is bad (the disk is "
        "gone), and all of them are bad too; the last, sample ";
    EXPECT_EQ(text.substr(0, begin.size()), begin);
    EXPECT_TRUE(text.ends_with(": the disk is gone")) << text;
    EXPECT_ERROR(pipeline.next(), io, text);
    EXPECT_EQ(pipeline.stats().bad_samples, 6);
    asked.on_error.max_share.reset();
    Pipeline limited = Pipeline::from_spec(asked);
    EXPECT_ERROR(limited.next(), io,
                 "epoch 0, batch 0: 6 samples of this epoch are bad, more than the 2 that it may "
                 "have (`on_error`); the last, counting sample 5: the disk is gone");
  }
}

DEVICE_TEST(BadSamplesTest, WhatIsNoSamplesFaultEndsTheRun) {
  for (const ErrorKind kind : {ErrorKind::resource, ErrorKind::device, ErrorKind::cancelled}) {
    Spec asked = spec(ErrorMode::skip);
    auto source = std::make_shared<CountingSource>(20);
    source->on_read_ = [kind](std::span<const std::int64_t> indices) {
      if (indices[0] == 7) throw Error(kind, "no more");
    };
    asked.source = source;
    source->grain_ = 1;
    Pipeline pipeline = Pipeline::from_spec(asked);
    ASSERT_TRUE(pipeline.next());
    EXPECT_EQ(failure_of([&] { pipeline.next(); }),
              "source counting, epoch 0, batch 1, sample 7: no more");
  }
}

DEVICE_TEST(BadSamplesTest, OnlyWhatIsDeliveredIsCountedAndListed) {
  const std::string path = kit::temporary_folder() + "/bad.jsonl";
  Spec asked = spec(ErrorMode::skip, {7});
  asked.prefetch_queue_depth = 5;
  asked.on_error.quarantine = path;
  auto counting = source(20, {7});
  asked.source = counting;
  Pipeline pipeline = Pipeline::from_spec(asked);
  ASSERT_TRUE(pipeline.next());
  while (counting->samples_read < 40)  // far into the second epoch
    std::this_thread::sleep_for(1ms);
  EXPECT_EQ(pipeline.stats().bad_samples, 0);
  EXPECT_TRUE(lines_of(path).empty());
  ASSERT_TRUE(pipeline.next());
  EXPECT_EQ(pipeline.stats().bad_samples, 1);
  EXPECT_EQ(lines_of(path), std::vector<std::string>{
                                R"({"source":"counting","index":7,"reason":"page 7 is gone"})"});
}

DEVICE_TEST(BadSamplesTest, AListHasEachSampleOnceWhateverTheEpochsShardsAndInterruptions) {
  const std::string path = kit::temporary_folder() + "/bad.jsonl";
  Spec asked = spec(ErrorMode::replace, {2, 7, 8, 19});
  asked.shuffle = ShuffleMode::full;
  asked.on_error.quarantine = path;
  std::vector<std::thread> threads;
  for (const int shard : {0, 1, 2}) {
    asked.shard = {shard, 3};
    threads.emplace_back([asked] {
      std::string state = Pipeline::from_spec(asked).state();
      for (int step = 0; step < 9; ++step) {  // interrupted behind each step
        Pipeline pipeline = Pipeline::from_spec(asked);
        pipeline.restore(state);
        const bool at_end = !pipeline.next();  // the state stood at the epoch's end
        EXPECT_TRUE(!at_end || pipeline.next());
        if (step % 2 == 0) state = pipeline.state();  // else the step is done again
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  std::vector<std::string> lines = lines_of(path), want;
  for (const int index : {2, 7, 8, 19})
    want.push_back(
        fmt::format(R"({{"source":"counting","index":{0},"reason":"page {0} is gone"}})", index));
  std::sort(lines.begin(), lines.end());
  std::sort(want.begin(), want.end());
  EXPECT_EQ(lines, want);
}

DEVICE_TEST(BadSamplesTest, AResumedRunGoesOnBitForBitAndKnowsItsCount) {
  for (const ErrorMode mode : {ErrorMode::skip, ErrorMode::replace}) {
    Spec asked = spec(mode, {1, 7, 8, 19});
    asked.shuffle = ShuffleMode::full;
    const auto run = [&](Pipeline& pipeline, std::vector<Ids>& rows) {
      const auto batch = pipeline.next();
      if (!batch) return;
      rows.push_back(ids_of(*batch));
      rows.back().push_back(batch->real_rows());
    };
    std::vector<Ids> want, got;
    Pipeline straight = Pipeline::from_spec(asked);
    for (std::string state = straight.state(); straight.position().epoch < 2;) {
      run(straight, want);
      Pipeline life = Pipeline::from_spec(asked);
      life.restore(state);
      run(life, got);
      state = life.state();
      EXPECT_EQ(state, straight.state());
    }
    EXPECT_EQ(got, want);
    // The limit counts over interruptions: of 4, the third is one too many.
    asked.on_error = {.mode = mode, .max_count = 2};
    std::string text;
    for (std::string state = Pipeline::from_spec(asked).state(); text.empty();) {
      Pipeline life = Pipeline::from_spec(asked);
      life.restore(state);
      ASSERT_EQ(life.position().epoch, 0);
      text = failure_of([&] { life.next(); });
      const std::string behind = life.state();
      EXPECT_TRUE(text.empty() || behind == state);  // a batch that is too much is not delivered
      state = behind;
    }
    EXPECT_NE(text.find(" samples of this epoch are bad, more than the 2 "), std::string::npos);
  }
}

DEVICE_TEST(BadSamplesTest, ARunThatABadSampleEndedGoesOnWithoutIt) {
  Spec asked = spec(ErrorMode::fail, {7});
  asked.on_error = {};
  Pipeline failed = Pipeline::from_spec(asked);
  ASSERT_TRUE(failed.next());
  EXPECT_ANY_THROW(failed.next());
  asked.on_error = {.mode = ErrorMode::skip};
  Pipeline skipping = Pipeline::from_spec(asked);
  skipping.restore(failed.state());
  EXPECT_EQ(real_ids(*skipping.next()), (Ids{6, 8, 9, 10, 11}));
  asked.on_error = {.mode = ErrorMode::replace};
  Pipeline replacing = Pipeline::from_spec(asked);
  EXPECT_ERROR(replacing.restore(skipping.state()), invalid,
               "the state is of another pipeline; restore it where it was saved, or allow "
               "changes:\n  bad samples: was skip; is replace");
}

DEVICE_TEST(BadSamplesTest, BatchesComeInOrderThroughSlowSteps) {
  // A batch that ends the run overtakes none that is still being computed.
  Spec asked = spec(ErrorMode::skip, {12, 13, 14});
  asked.on_error = {.mode = ErrorMode::skip, .max_count = 2};
  asked.stages.push_back(
      stage(same_op(), [](const BatchInfo&) { std::this_thread::sleep_for(10ms); }));
  Pipeline pipeline = Pipeline::from_spec(asked, {.cuda_graphs = false});
  EXPECT_EQ(pipeline.next()->step(), 0);
  EXPECT_EQ(pipeline.next()->step(), 1);
  EXPECT_EQ(failure_of([&] { pipeline.next(); }).substr(0, 18), "epoch 0, batch 2: ");
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
