// Where bad samples end a run, what is counted and listed, and what a resumed run knows of it.

#include <fstream>

#include "bad_samples_test.h"

namespace forebay::test {
namespace {

/// The text of what `action` throws, or nothing.
std::string failure_of(const std::function<void()>& action) {
  try {
    action();
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);)
    lines.push_back(line);
  return lines;
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

}  // namespace
}  // namespace forebay::test
