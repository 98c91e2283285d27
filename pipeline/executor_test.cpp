// What a run delivers: values, order, epochs, the last batch, what steps see, statistics.

#include <algorithm>
#include <numeric>
#include <set>

#include "fixture_test.h"

namespace forebay::test {
namespace {

class ExecutorTest : public PipelineTest {};

using Rows = std::vector<std::vector<std::int64_t>>;

/// The sample ids of each batch of one epoch, which must be intact.
Rows epoch_ids(Pipeline& pipeline, std::int64_t epoch) {
  Rows rows;
  std::int64_t step = 0;
  for (Batch& batch : pipeline.epoch(epoch)) {
    EXPECT_TRUE(is_intact(batch));
    EXPECT_EQ(batch.epoch(), epoch);
    EXPECT_EQ(batch.step(), step++);
    EXPECT_EQ(batch.rows(), static_cast<std::int64_t>(batch.sample_ids().size()));
    rows.push_back(ids_of(batch));
  }
  return rows;
}

DEVICE_TEST(ExecutorTest, DeliversColumnsAsTheyAre) {
  Pipeline pipeline = Pipeline::from_spec(counting_spec(device()));
  EXPECT_EQ(pipeline.steps_per_epoch(), 4);
  EXPECT_EQ(pipeline.device(), device());
  EXPECT_EQ(epoch_ids(pipeline, 0),
            (Rows{{0, 1, 2, 3, 4, 5}, {6, 7, 8, 9, 10, 11}, {12, 13, 14, 15, 16, 17}, {18, 19}}));
  const auto batch = pipeline.next();
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->names(), (std::vector<std::string>{"x", "label"}));
  EXPECT_EQ((*batch)["x"].device(), device());
  EXPECT_EQ((*batch)["x"].shape(), (Dims{6, 3}));
  EXPECT_EQ((*batch)["x"].dtype(), Dtype::f32);
}

DEVICE_TEST(ExecutorTest, RunsPointwiseAndKernelStages) {
  Spec spec = counting_spec(device());
  spec.stages.push_back(stage("clip", Clip{.min = 5, .max = 100}));
  spec.stages.push_back(stage("cast", Cast{.dtype = Dtype::i32}));
  spec.stages.push_back(stage(same_op()));
  spec.stages.push_back(stage("cast", Cast{.dtype = Dtype::f64}));
  spec.stages.push_back(stage("clip", Clip{.max = 60.5}));
  Pipeline pipeline = Pipeline::from_spec(spec);
  std::int64_t next = 0;
  for (int epoch = 0; epoch < 3;
       ++epoch) {  // the GPU's graphs replay from the second use of a slot
    for (Batch& batch : pipeline.epoch(epoch)) {
      std::vector<double> want;
      for (const std::int64_t id : batch.sample_ids()) {
        EXPECT_EQ(id, next++ % 20);
        for (int j = 0; j < 3; ++j)
          want.push_back(std::clamp(static_cast<double>(10 * id + j), 5.0, 60.5));
      }
      EXPECT_EQ(batch["x"].dtype(), Dtype::f64);
      EXPECT_TRUE(kit::near(kit::to_host(batch["x"], kit::context(device())), want, 0));
      EXPECT_EQ(integers(batch["label"]), ids_of(batch));
    }
  }
  EXPECT_EQ(next, 60);
}

DEVICE_TEST(ExecutorTest, StepsSeeSampleIdsEpochAndBatch) {
  Spec spec = counting_spec(device());
  spec.shuffle = ShuffleMode::full;
  spec.seed = 11;
  std::mutex mutex;
  std::set<std::pair<std::int64_t, std::int64_t>> seen;
  spec.stages.push_back(stage(same_op(), [&](const BatchInfo& info) {
    const std::lock_guard lock(mutex);
    EXPECT_EQ(info.seed, 11u);
    EXPECT_EQ(info.sample_ids.device, device());
    seen.emplace(info.epoch, info.batch);
  }));
  spec.stages.push_back(stage(probe_op()));
  spec.stages.back().outputs = {"ids", "position"};
  Pipeline pipeline = Pipeline::from_spec(spec, {.cuda_graphs = false});
  Pipeline replayed = Pipeline::from_spec(spec);  // with graphs where there is a GPU
  for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
    for (Pipeline* each : {&pipeline, &replayed}) {
      for (Batch& batch : each->epoch(epoch)) {
        EXPECT_EQ(integers(batch["ids"]), ids_of(batch));
        EXPECT_EQ(integers(batch["position"]), (std::vector<std::int64_t>{epoch, batch.step(), 11}));
        EXPECT_TRUE(is_intact(batch));
      }
    }
  }
  for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
    for (std::int64_t step = 0; step < 4; ++step)
      EXPECT_TRUE(seen.contains({epoch, step})) << epoch << " " << step;
  }
}

DEVICE_TEST(ExecutorTest, ShuffledOrderIsTheSamplersAtAnyDepthAndThreadCount) {
  const Sampler sampler({.order = shuffled_order(20, 5), .batch_size = 6});
  for (const int depth : {1, 2, 5}) {
    for (const int threads : {1, 2, 4}) {
      Spec spec = counting_spec(device());
      spec.shuffle = ShuffleMode::full;
      spec.seed = 5;
      spec.prefetch_queue_depth = depth;
      spec.num_threads = threads;
      Pipeline pipeline = Pipeline::from_spec(spec);
      for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
        Rows want;
        for (BatchPosition at{epoch}; !sampler.ends_at(at.cursor); at = sampler.after(at)) {
          auto& row = want.emplace_back(static_cast<std::size_t>(sampler.rows(at.cursor)));
          sampler.indices(at, row.data());
        }
        EXPECT_EQ(epoch_ids(pipeline, epoch), want) << "depth " << depth << ", threads " << threads;
      }
    }
  }
}

DEVICE_TEST(ExecutorTest, LastBatchPolicies) {
  Spec spec = counting_spec(device());
  spec.stages.push_back(stage("clip", Clip{.min = 0}));
  spec.stages.push_back(stage(same_op()));
  const Rows whole = {{0, 1, 2, 3, 4, 5}, {6, 7, 8, 9, 10, 11}, {12, 13, 14, 15, 16, 17}};
  for (const auto& [policy, last] :
       {std::pair{LastBatchPolicy::partial, Rows{{18, 19}}},
        std::pair{LastBatchPolicy::drop, Rows{}},
        std::pair{LastBatchPolicy::fill, Rows{{18, 19, 0, 1, 2, 3}}}}) {
    spec.last_batch_policy = policy;
    Pipeline pipeline = Pipeline::from_spec(spec);
    Rows want = whole;
    want.insert(want.end(), last.begin(), last.end());
    EXPECT_EQ(pipeline.steps_per_epoch(), static_cast<std::int64_t>(want.size()));
    for (std::int64_t epoch = 0; epoch < 4; ++epoch)
      EXPECT_EQ(epoch_ids(pipeline, epoch), want);
  }
}

/// 20 samples in global batches of 9: the last two are real on the first two shards.
DEVICE_TEST(ExecutorTest, ShardsAreThePartsOfOneRun) {
  Spec spec = counting_spec(device());
  spec.shuffle = ShuffleMode::full;
  spec.stages.push_back(stage("clip", Clip{.min = 0}));
  for (const auto policy :
       {LastBatchPolicy::partial, LastBatchPolicy::drop, LastBatchPolicy::fill}) {
    spec.last_batch_policy = policy;
    spec.batch_size = 9;
    spec.shard = {};
    Pipeline one = Pipeline::from_spec(spec);
    std::vector<Pipeline> shards;
    for (int id = 0; id < 3; ++id) {
      spec.batch_size = 3;
      spec.shard = {id, 3};
      shards.push_back(Pipeline::from_spec(spec));
      EXPECT_EQ(shards.back().steps_per_epoch(), one.steps_per_epoch());
    }
    for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
      for (const Batch& batch : one.epoch(epoch)) {
        std::vector<std::int64_t> joined;
        for (Pipeline& shard : shards) {
          const auto part = shard.next();
          ASSERT_TRUE(part);
          EXPECT_TRUE(is_intact(*part));
          EXPECT_EQ(part->step(), batch.step());
          const auto ids = ids_of(*part);
          joined.insert(joined.end(), ids.begin(), ids.begin() + part->real_rows());
        }
        auto want = ids_of(batch);
        want.resize(static_cast<std::size_t>(batch.real_rows()));
        EXPECT_EQ(joined, want);
      }
      for (Pipeline& shard : shards)
        EXPECT_FALSE(shard.next());
    }
  }
}

DEVICE_TEST(ExecutorTest, AShardWithoutARealRowStillHasItsStep) {
  Spec spec = counting_spec(device(), std::make_shared<CountingSource>(4));
  spec.batch_size = 1;
  spec.shard = {2, 3};
  Pipeline pipeline = Pipeline::from_spec(spec);
  ASSERT_EQ(pipeline.steps_per_epoch(), 2);
  const auto first = pipeline.next(), last = pipeline.next();
  EXPECT_EQ(first->real_rows(), 1);
  EXPECT_EQ(ids_of(*first), std::vector<std::int64_t>{2});
  EXPECT_EQ(last->rows(), 1);
  EXPECT_EQ(last->real_rows(), 0);
  EXPECT_TRUE(is_intact(*last));
  EXPECT_FALSE(pipeline.next());
}

DEVICE_TEST(ExecutorTest, DeliversTheDeclaredOrder) {
  Spec spec = counting_spec(device());
  spec.subset = Array::from({5}, std::vector<std::int64_t>{19, 3, 7, 7, 0});
  Pipeline listed = Pipeline::from_spec(spec);
  EXPECT_EQ(epoch_ids(listed, 0), (Rows{{19, 3, 7, 7, 0}}));
  spec.sampling = {.mode = SamplingMode::weighted,
                   .samples = 8,
                   .weights = Array::from({20}, std::vector<double>{0, 1, 1, 5, 1, 1, 1, 0, 1, 1,
                                                                    1, 1, 1, 1, 1, 1, 1, 1, 1, 0})};
  Pipeline drawn = Pipeline::from_spec(spec);
  EXPECT_EQ(epoch_ids(drawn, 0), (Rows{{3, 3, 3, 3, 3, 3}, {3, 3}}));
  spec.sampling = {};
  spec.subset = {};
  spec.split = {.part = SplitPart::validation, .validation = 0.1, .by = "label"};
  Pipeline held_out = Pipeline::from_spec(spec);
  EXPECT_EQ(epoch_ids(held_out, 0), (Rows{{17}}));
}

DEVICE_TEST(ExecutorTest, FewerSamplesThanABatchAndNoneAtAll) {
  Pipeline one = Pipeline::from_spec(counting_spec(device(), std::make_shared<CountingSource>(4)));
  EXPECT_EQ(epoch_ids(one, 0), (Rows{{0, 1, 2, 3}}));
  EXPECT_EQ(epoch_ids(one, 1), (Rows{{0, 1, 2, 3}}));
  Pipeline none = Pipeline::from_spec(counting_spec(device(), std::make_shared<CountingSource>(0)));
  EXPECT_EQ(none.steps_per_epoch(), 0);
  EXPECT_FALSE(none.next());
  EXPECT_FALSE(none.next());
  EXPECT_EQ(epoch_ids(none, 7), Rows{});
}

DEVICE_TEST(ExecutorTest, SamplesWithoutElements) {
  Pipeline pipeline =
      Pipeline::from_spec(counting_spec(device(), std::make_shared<CountingSource>(7, 0)));
  std::int64_t rows = 0;
  for (Batch& batch : pipeline.epoch(0)) {
    EXPECT_EQ(batch["x"].count(), 0);
    EXPECT_EQ(integers(batch["label"]), ids_of(batch));
    rows += batch.rows();
  }
  EXPECT_EQ(rows, 7);
}

DEVICE_TEST(ExecutorTest, NextEndsAnEpochOnceAndThenBeginsTheNext) {
  Pipeline pipeline = Pipeline::from_spec(counting_spec(device()));
  for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
    for (std::int64_t step = 0; step < 4; ++step) {
      const auto batch = pipeline.next();
      ASSERT_TRUE(batch);
      EXPECT_EQ(batch->epoch(), epoch);
      EXPECT_EQ(batch->step(), step);
    }
    EXPECT_FALSE(pipeline.next());
  }
}

DEVICE_TEST(ExecutorTest, StartEpochGoesAnywhere) {
  Spec spec = counting_spec(device());
  spec.shuffle = ShuffleMode::full;
  Pipeline fresh = Pipeline::from_spec(spec);
  Pipeline pipeline = Pipeline::from_spec(spec);
  // From the start, in the middle, after the last batch but before the end was seen, back, the same
  // again, far away.
  const Rows seventh = epoch_ids(fresh, 7);
  EXPECT_EQ(epoch_ids(pipeline, 7), seventh);
  const auto take = [&](int count) {
    for (int i = 0; i < count; ++i)
      ASSERT_TRUE(pipeline.next());
  };
  for (const int taken : {0, 1, 3, 4}) {
    pipeline.start_epoch(2);
    take(taken);
    EXPECT_EQ(epoch_ids(pipeline, 3), epoch_ids(fresh, 3)) << taken << " batches of epoch 2 before";
    pipeline.start_epoch(8);
    take(taken);
    EXPECT_EQ(epoch_ids(pipeline, 8), epoch_ids(fresh, 8)) << taken << " batches of epoch 8 before";
    pipeline.start_epoch(9);
    take(taken);
    EXPECT_EQ(epoch_ids(pipeline, 7), seventh) << taken << " batches of epoch 9 before";
  }
  EXPECT_ERROR(pipeline.start_epoch(-1), invalid, "the epoch is -1; it must be at least 0.");
}

DEVICE_TEST(ExecutorTest, PreparesTheNextEpochAhead) {
  auto source = std::make_shared<CountingSource>(12);
  Pipeline pipeline = Pipeline::from_spec(counting_spec(device(), source));
  for (Batch& batch : pipeline.epoch(0))
    EXPECT_TRUE(batch.valid());
  while (source->samples_read < 24)
    std::this_thread::sleep_for(1ms);  // both batches of epoch 1, unasked
  const std::int64_t before = source->samples_read;
  pipeline.start_epoch(1);
  for (int i = 0; i < 2; ++i) {
    const auto batch = pipeline.next();
    EXPECT_EQ(batch->epoch(), 1);
  }
  EXPECT_GE(before, 24);
  EXPECT_LE(source->samples_read - before, 24);  // nothing of epoch 1 was read twice
}

DEVICE_TEST(ExecutorTest, BackPressureIsTheNumberOfSlots) {
  auto source = std::make_shared<CountingSource>(600);
  Spec spec = counting_spec(device(), source);
  spec.prefetch_queue_depth = 3;
  Pipeline pipeline = Pipeline::from_spec(spec);
  auto batch = pipeline.next();
  std::this_thread::sleep_for(100ms);
  EXPECT_LE(source->samples_read, 6 * 5);  // one in use, four others
  batch.reset();
  EXPECT_EQ(pipeline.stats().slots, 5);
  EXPECT_GT(pipeline.stats().blocked_ms, 50);
}

DEVICE_TEST(ExecutorTest, ReadingOverlapsWithSteps) {
  // Each batch's step waits until the next batch is being read: only possible when both run at a
  // time.
  auto source = std::make_shared<CountingSource>(60);
  auto reads = std::make_shared<std::atomic<std::int64_t>>(0);
  source->grain_ = 1000;  // one call a batch
  source->on_read_ = [reads](std::span<const std::int64_t>) { ++*reads; };
  Spec spec = counting_spec(Device::cpu(), source);
  std::atomic<bool> overlapped{true};
  spec.stages.push_back(stage(same_op(), [&, reads](const BatchInfo& info) {
    if (info.epoch > 0 || info.batch == 9) return;
    const auto end = std::chrono::steady_clock::now() + 20s;
    while (*reads < info.batch + 2 && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(1ms);
    if (*reads < info.batch + 2) overlapped = false;
  }));
  Pipeline pipeline = Pipeline::from_spec(spec);
  for (Batch& batch : pipeline.epoch(0))
    EXPECT_TRUE(is_intact(batch));
  EXPECT_TRUE(overlapped);
}

DEVICE_TEST(ExecutorTest, StageOnTheCpu) {
  // On a GPU pipeline: down, through a CPU body, and up again, in every batch.
  Spec spec = counting_spec(device());
  spec.stages.push_back(stage("clip", Clip{.min = 5}));
  spec.stages.push_back(stage(cpu_only_op()));
  spec.stages.back().device = Device::cpu();
  spec.stages.push_back(stage("clip", Clip{.max = 70}));
  spec.stages.push_back(stage(same_op()));
  Pipeline pipeline = Pipeline::from_spec(spec);
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (Batch& batch : pipeline.epoch(epoch)) {
      std::vector<double> want;
      for (const std::int64_t id : batch.sample_ids()) {
        for (int j = 0; j < 3; ++j)
          want.push_back(std::clamp(static_cast<double>(10 * id + j), 5.0, 70.0));
      }
      EXPECT_EQ(batch["x"].device(), device());
      EXPECT_TRUE(kit::near(kit::to_host(batch["x"], kit::context(device())), want, 0));
    }
  }
  EXPECT_EQ(pipeline.stats().returned_bytes > 0, device().is_cuda());
}

DEVICE_TEST(ExecutorTest, SeveralPipelinesAtOnce) {
  std::vector<Pipeline> pipelines;
  for (int i = 0; i < 4; ++i) {
    Spec spec = counting_spec(device());
    spec.stages.push_back(stage("clip", Clip{.min = 0}));
    spec.shuffle = ShuffleMode::full;
    spec.seed = static_cast<std::uint64_t>(i);
    pipelines.push_back(Pipeline::from_spec(spec));
  }
  std::vector<std::thread> threads;
  for (Pipeline& pipeline : pipelines) {
    threads.emplace_back([&] {
      for (std::int64_t epoch = 0; epoch < 5; ++epoch)
        EXPECT_EQ(epoch_ids(pipeline, epoch).size(), 4u);
    });
  }
  for (std::thread& thread : threads)
    thread.join();
}

DEVICE_TEST(ExecutorTest, MovesAndOutlivesItsBuilder) {
  Pipeline first = Pipeline::build()
                       .source(std::make_shared<CountingSource>(20))
                       .batch_size(6)
                       .device(device())
                       .name("built")
                       .clip({.min = 0})
                       .output({"label", "x"})
                       .create();
  EXPECT_TRUE(first.next());
  Pipeline second = std::move(first);
  EXPECT_EQ(second.next()->step(), 1);
  EXPECT_EQ(second.spec().name, "built");
  EXPECT_EQ(second.next()->names(), (std::vector<std::string>{"label", "x"}));
  second = Pipeline::from_spec(counting_spec(device()));
  EXPECT_EQ(second.next()->step(), 0);
}

DEVICE_TEST(ExecutorTest, CountsWhatItDoes) {
  Spec spec = counting_spec(device());
  spec.stages.push_back(stage("clip", Clip{.min = 0}));
  spec.stages.push_back(stage(same_op()));
  Pipeline pipeline = Pipeline::from_spec(spec, {.time_steps = true});
  for (Batch& batch : pipeline.epoch(0))
    EXPECT_TRUE(batch.valid());
  const Stats stats = pipeline.stats();
  EXPECT_EQ(stats.batches, 4);
  EXPECT_EQ(stats.samples, 20);
  EXPECT_GT(stats.wait_ms, 0);
  EXPECT_GT(stats.read_ms, 0);
  EXPECT_EQ(stats.slots, 4);
  EXPECT_EQ(stats.returned_bytes, 0u);
  const std::size_t load = device().is_cuda() ? 1 : 0;
  ASSERT_EQ(stats.steps.size(), load + 2);
  EXPECT_EQ(stats.steps[load].label, "clip");
  EXPECT_EQ(stats.steps[load + 1].label, "same");
  for (std::size_t i = load; i < stats.steps.size(); ++i) {
    EXPECT_GE(stats.steps[i].runs, 4);
    EXPECT_GT(stats.steps[i].total_ms, 0);
  }
  if (device().is_cuda()) {
    EXPECT_GE(stats.copied_bytes, 4 * 2 * (8 + 12));
    EXPECT_EQ(stats.graph_fallback, "time_steps measures each step by itself");
  } else {
    EXPECT_EQ(stats.copied_bytes, 0u);
    EXPECT_EQ(stats.graph_fallback, "no step runs on a GPU");
  }
}

TEST(ExecutorCuda, ReplaysGraphs) {
  SKIP_WITHOUT(Device::cuda());
  const Watchdog watchdog;
  Spec spec = counting_spec(Device::cuda());
  spec.stages.push_back(stage("clip", Clip{.min = 0}));
  spec.stages.push_back(stage(probe_op()));
  spec.stages.back().outputs = {"ids"};
  Pipeline pipeline = Pipeline::from_spec(spec);
  for (int epoch = 0; epoch < 8; ++epoch) {
    for (Batch& batch : pipeline.epoch(epoch)) {
      EXPECT_TRUE(is_intact(batch));
      EXPECT_EQ(integers(batch["ids"]), ids_of(batch));
    }
  }
  EXPECT_EQ(pipeline.stats().graph_fallback, "");
  EXPECT_GE(pipeline.stats().graph_replays,
            30);  // all but the first whole and the first partial batch
  Pipeline plain = Pipeline::from_spec(spec, {.cuda_graphs = false});
  for (Batch& batch : plain.epoch(0))
    EXPECT_TRUE(is_intact(batch));
  EXPECT_EQ(plain.stats().graph_fallback, "cuda_graphs is off");
  EXPECT_EQ(plain.stats().graph_replays, 0);
}

}  // namespace
}  // namespace forebay::test
