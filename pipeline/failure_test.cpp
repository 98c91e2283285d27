// What goes wrong, and how a run ends: the first failure wins, nothing hangs, nothing is thrown by
// a destructor.

#include <forebay/pipeline/failure.h>

#include <forebay/pipeline/order/permutation.h>

#include "fixture_test.h"

namespace forebay::test {
namespace {

class FailureTest : public PipelineTest {};

/// Takes batches of every epoch until one fails; says how many there were.
int take_until_failure(Pipeline& pipeline, std::string& text, ErrorKind& kind) {
  for (int batches = 0;;) {
    try {
      batches += pipeline.next().has_value();
    } catch (const Error& error) {
      text = error.what();
      kind = error.kind();
      return batches;
    }
  }
}

DEVICE_TEST(FailureTest, SourceThatThrowsAtAnyPosition) {
  for (const std::int64_t bad : {0, 5, 6, 17, 18, 19}) {
    for (const int depth : {1, 3}) {
      auto source = std::make_shared<CountingSource>(20);
      source->on_read_ = [bad](std::span<const std::int64_t> indices) {
        for (const std::int64_t index : indices) {
          if (index == bad) throw Error(ErrorKind::unsupported, "no such page");
        }
      };
      Spec spec = counting_spec(device(), source);
      spec.prefetch_queue_depth = depth;
      Pipeline pipeline = Pipeline::from_spec(spec);
      std::string text;
      ErrorKind kind;
      // Whatever was read ahead, all batches before the bad one are delivered.
      EXPECT_EQ(take_until_failure(pipeline, text, kind), bad / 6);
      EXPECT_EQ(text, "source counting, epoch 0, batch " + std::to_string(bad / 6) + ", samples " +
                          std::to_string(bad / 2 * 2) + ".." + std::to_string(bad / 2 * 2 + 1) +
                          ": no such page");
      EXPECT_EQ(kind, ErrorKind::unsupported);
      EXPECT_ERROR(pipeline.next(), unsupported, text);
      EXPECT_ERROR(pipeline.start_epoch(3), unsupported, text);
      EXPECT_ERROR(pipeline.next(), unsupported, text);
    }
  }
}

DEVICE_TEST(FailureTest, SourceThatThrowsInALaterEpoch) {
  auto source = std::make_shared<CountingSource>(20);
  std::atomic<int> reads{0};
  source->on_read_ = [&](std::span<const std::int64_t> indices) {
    if (indices[0] == 0 && ++reads == 3) throw std::runtime_error("gone");
  };
  Pipeline pipeline = Pipeline::from_spec(counting_spec(device(), source));
  std::string text;
  ErrorKind kind;
  EXPECT_EQ(take_until_failure(pipeline, text, kind), 8);
  EXPECT_EQ(text, "source counting, epoch 2, batch 0, samples 0..1: gone");
  EXPECT_EQ(kind, ErrorKind::io);
}

DEVICE_TEST(FailureTest, AFailureAheadOfAJumpIsForgotten) {
  // The last batch of epoch 0 fails while it is read ahead; a consumer that goes elsewhere never
  // meets it.
  auto source = std::make_shared<CountingSource>(20);
  std::atomic<int> failed{0};
  source->on_read_ = [&](std::span<const std::int64_t> indices) {
    if (indices[0] == 18 && failed++ == 0) throw std::runtime_error("gone");
  };
  Spec spec = counting_spec(device(), source);
  spec.prefetch_queue_depth = 5;
  Pipeline pipeline = Pipeline::from_spec(spec);
  EXPECT_TRUE(pipeline.next());
  while (failed == 0)
    std::this_thread::sleep_for(1ms);
  std::this_thread::sleep_for(20ms);
  int batches = 0;
  for (Batch& batch : pipeline.epoch(1)) {
    EXPECT_TRUE(is_intact(batch));
    ++batches;
  }
  EXPECT_EQ(batches, 4);
}

DEVICE_TEST(FailureTest, ABatchUnderWayIsDroppedByAJump) {
  auto source = std::make_shared<CountingSource>(20);
  Gate gate;
  std::atomic<bool> reading{false};
  source->grain_ = 1000;
  source->on_read_ = [&](std::span<const std::int64_t> indices) {
    if (indices[0] != 6) return;
    reading = true;
    gate.wait();
  };
  Pipeline pipeline = Pipeline::from_spec(counting_spec(device(), source));
  EXPECT_TRUE(pipeline.next());
  while (!reading)
    std::this_thread::sleep_for(1ms);
  pipeline.start_epoch(5);
  gate.open();
  for (std::int64_t step = 0; step < 4; ++step) {
    const auto batch = pipeline.next();
    EXPECT_EQ(batch->epoch(), 5);
    EXPECT_EQ(batch->step(), step);
    EXPECT_TRUE(is_intact(*batch));
  }
}

DEVICE_TEST(FailureTest, UsersExceptionsOfAnyType) {
  const auto text_of = [&](std::function<void()> raise) {
    auto source = std::make_shared<CountingSource>(20);
    source->on_read_ = [raise](std::span<const std::int64_t>) { raise(); };
    Pipeline pipeline = Pipeline::from_spec(counting_spec(device(), source));
    std::string text;
    ErrorKind kind;
    take_until_failure(pipeline, text, kind);
    const std::string where = "source counting, epoch 0, batch 0, samples ";
    EXPECT_EQ(text.substr(0, where.size()), where);
    return text.substr(text.find(": ") + 2) + " / " + std::to_string(static_cast<int>(kind));
  };
  EXPECT_EQ(text_of([] { throw 42; }), "an exception that is no std::exception. / 2");
  EXPECT_EQ(text_of([] { throw std::bad_alloc(); }), "the host has no memory left. / 3");
  EXPECT_EQ(text_of([] { throw std::runtime_error("oh"); }), "oh / 2");
}

DEVICE_TEST(FailureTest, SamplesAreNamedInShuffledOrder) {
  Spec spec = counting_spec(device());
  auto source = std::make_shared<CountingSource>(20);
  source->grain_ = 3;
  source->on_read_ = [](std::span<const std::int64_t> indices) {
    for (const std::int64_t index : indices) {
      if (index == 7) throw std::runtime_error("gone");
    }
  };
  spec.source = source;
  spec.shuffle = ShuffleMode::full;
  spec.seed = 4;
  const Permutation order(20, 4, 0);
  std::int64_t position = 0;
  while (order(position) != 7)
    ++position;
  std::vector<std::int64_t> block;
  for (std::int64_t row = position % 6 / 3 * 3; row < 3 + position % 6 / 3 * 3; ++row) {
    if (position / 6 * 6 + row < 20) block.push_back(order(position / 6 * 6 + row));
  }
  Pipeline pipeline = Pipeline::from_spec(spec);
  std::string text;
  ErrorKind kind;
  take_until_failure(pipeline, text, kind);
  EXPECT_EQ(text, "source counting, epoch 0, batch " + std::to_string(position / 6) + ", " +
                      sample_title(block) + ": gone");
}

TEST(SampleTitle, NamesRangesAndLists) {
  EXPECT_EQ(sample_title(std::vector<std::int64_t>{5}), "sample 5");
  EXPECT_EQ(sample_title(std::vector<std::int64_t>{96, 97, 98}), "samples 96..98");
  EXPECT_EQ(sample_title(std::vector<std::int64_t>{5, 17, 3}), "samples 5, 17, 3");
  std::vector<std::int64_t> twenty;
  for (int i = 20; i > 0; --i)
    twenty.push_back(i);
  EXPECT_EQ(sample_title(twenty),
            "samples 20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5 and 4 more");
}

DEVICE_TEST(FailureTest, StageBodyThatThrows) {
  for (const std::int64_t bad : {0, 2, 3, 5}) {
    Spec spec = counting_spec(device());
    spec.stages.push_back(stage("clip", Clip{.min = 0}));
    spec.stages.push_back(stage(same_op(), [bad](const BatchInfo& info) {
      if (info.epoch * 4 + info.batch == bad) throw Error(ErrorKind::resource, "same: too much");
    }));
    Pipeline pipeline = Pipeline::from_spec(spec, {.cuda_graphs = false});
    std::string text;
    ErrorKind kind;
    EXPECT_EQ(take_until_failure(pipeline, text, kind), bad);
    EXPECT_EQ(text, "stage 2 (same), epoch " + std::to_string(bad / 4) + ", batch " +
                        std::to_string(bad % 4) + ": too much");
    EXPECT_EQ(kind, ErrorKind::resource);
    EXPECT_ERROR(pipeline.next(), resource, text);
  }
}

DEVICE_TEST(FailureTest, TheEarlierOfTwoFailuresIsTheOneThatIsSeen) {
  // Batch 1 fails in its stage, late; batch 2 in the source, early.
  auto source = std::make_shared<CountingSource>(20);
  std::atomic<bool> source_failed{false};
  source->on_read_ = [&](std::span<const std::int64_t> indices) {
    if (indices[0] < 12) return;
    source_failed = true;
    throw std::runtime_error("source");
  };
  Spec spec = counting_spec(device(), source);
  spec.stages.push_back(stage(same_op(), [&](const BatchInfo& info) {
    if (info.batch != 1) return;
    if (!device().is_cuda()) {  // on a GPU the stage is enqueued before the next batch is read
      while (!source_failed)
        std::this_thread::sleep_for(1ms);
      std::this_thread::sleep_for(20ms);
    }
    throw std::runtime_error("stage");
  }));
  Pipeline pipeline = Pipeline::from_spec(spec, {.cuda_graphs = false});
  EXPECT_TRUE(pipeline.next());
  EXPECT_ERROR(pipeline.next(), device, "stage 1 (same), epoch 0, batch 1: stage");
}

DEVICE_TEST(FailureTest, BodyThatCannotBePrepared) {
  static const OpEntry entry{
      hook_def({.name = "unready", .infer = infer_hook<infer_same>}),
      [](const Op&, const Problem&, const Context&) -> std::unique_ptr<Body> {
        throw Error(ErrorKind::unsupported, "unready: no plan of this size");
      },
      [](const Op&, const Problem&, const Context&) -> std::unique_ptr<Body> {
        throw Error(ErrorKind::unsupported, "unready: no plan of this size");
      }};
  Spec spec = counting_spec(device());
  spec.stages.push_back(stage(entry));
  Pipeline pipeline = Pipeline::from_spec(spec);
  const std::string device_text = device().is_cuda() ? "cuda:0" : "cpu";
  EXPECT_ERROR(pipeline.next(), unsupported,
               "stage 1 (unready), preparing it for " + device_text + ": no plan of this size");
}

DEVICE_TEST(FailureTest, BreakAtEveryStep) {
  for (int steps = 0; steps <= 9; ++steps) {
    Spec spec = counting_spec(device());
    spec.stages.push_back(stage("clip", Clip{.min = 0}));
    spec.stages.push_back(stage(same_op()));
    Pipeline pipeline = Pipeline::from_spec(spec);
    for (int i = 0; i < steps; ++i)
      pipeline.next();
  }
}

DEVICE_TEST(FailureTest, DestructionBeforeTheFirstBatchAndWithAFullQueue) {
  { const Pipeline pipeline = Pipeline::from_spec(counting_spec(device())); }
  for (const auto pause : {0ms, 1ms, 30ms}) {
    Spec spec = counting_spec(device(), std::make_shared<CountingSource>(60000));
    spec.prefetch_queue_depth = 4;
    Pipeline pipeline = Pipeline::from_spec(spec);
    EXPECT_TRUE(pipeline.next());
    std::this_thread::sleep_for(pause);
  }
}

DEVICE_TEST(FailureTest, DestructionDoesNotWaitForTheRestOfABatch) {
  auto source = std::make_shared<CountingSource>(2000);
  std::atomic<int> reads{0};
  source->grain_ = 1;
  source->on_read_ = [&](std::span<const std::int64_t>) {
    ++reads;
    if (reads > 10) std::this_thread::sleep_for(20ms);
  };
  Spec spec = counting_spec(device(), source);
  spec.batch_size = 1000;  // 20 s of reading
  {
    Pipeline pipeline = Pipeline::from_spec(spec);
    std::thread waiting([&] {
      EXPECT_ERROR(pipeline.next(), cancelled,
                   "pipeline test was stopped; it delivers nothing more.");
    });
    while (reads < 12)
      std::this_thread::sleep_for(1ms);
    pipeline.stop();
    waiting.join();
  }
  EXPECT_LT(reads, 200);
}

DEVICE_TEST(FailureTest, StopEndsAWaitingNext) {
  auto source = std::make_shared<CountingSource>(20);
  Gate gate;
  source->on_read_ = [&](std::span<const std::int64_t> indices) {
    if (indices[0] >= 6) gate.wait();
  };
  Pipeline pipeline = Pipeline::from_spec(counting_spec(device(), source));
  auto held = pipeline.next();
  std::thread stopper([&] {
    std::this_thread::sleep_for(20ms);
    pipeline.stop();
  });
  EXPECT_ERROR(pipeline.next(), cancelled, "pipeline test was stopped; it delivers nothing more.");
  stopper.join();
  gate.open();
  EXPECT_TRUE(is_intact(*held));
  held.reset();
  EXPECT_ERROR(pipeline.next(), cancelled, "pipeline test was stopped; it delivers nothing more.");
  EXPECT_ERROR(pipeline.start_epoch(1), cancelled,
               "pipeline test was stopped; it delivers nothing more.");
  pipeline.stop();
}

DEVICE_TEST(FailureTest, StopBeforeTheFirstBatch) {
  Pipeline pipeline = Pipeline::from_spec(counting_spec(device()));
  pipeline.stop();
  EXPECT_ERROR(pipeline.next(), cancelled, "pipeline test was stopped; it delivers nothing more.");
}

DEVICE_TEST(FailureTest, FailuresInAStormOfPipelines) {
  // Many short lives, with a failure, a break or a stop at a place that changes.
  for (int i = 0; i < 60; ++i) {
    auto source = std::make_shared<CountingSource>(20);
    source->on_read_ = [i](std::span<const std::int64_t> indices) {
      if (i % 3 == 0 && indices[0] >= i % 20) throw std::runtime_error("gone");
    };
    Spec spec = counting_spec(device(), source);
    spec.stages.push_back(stage(same_op(), [i](const BatchInfo& info) {
      if (i % 3 == 1 && info.batch == i % 4) throw std::runtime_error("gone");
    }));
    Pipeline pipeline = Pipeline::from_spec(spec, {.cuda_graphs = false});
    std::thread stopper;
    if (i % 3 == 2) stopper = std::thread([&] { pipeline.stop(); });
    try {
      for (int taken = 0; taken < i % 7; ++taken)
        pipeline.next();
    } catch (const Error&) {
    }
    if (stopper.joinable()) stopper.join();
  }
}

}  // namespace
}  // namespace forebay::test
