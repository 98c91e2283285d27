// The hand-off: nobody writes into memory that a consumer still uses, whatever the consumer does.

#include <cmath>
#include <future>

#include "fixture_test.h"

namespace forebay::test {
namespace {

class LeaseTest : public PipelineTest {};

Spec many(Device device, std::int64_t size = 600) {
  Spec spec = counting_spec(device, std::make_shared<CountingSource>(size));
  spec.stages.push_back(stage("clip", Clip{.min = 0}));
  return spec;
}

DEVICE_TEST(LeaseTest, HeldBatchesKeepTheirBytes) {
  Spec spec = many(device());
  spec.max_held_batches = 9;
  Pipeline pipeline = Pipeline::from_spec(spec);
  std::vector<Batch> held;
  for (int i = 0; i < 9; ++i)
    held.push_back(*pipeline.next());
  std::this_thread::sleep_for(50ms);  // the producer fills all it may
  for (const Batch& batch : held)
    EXPECT_TRUE(is_intact(batch)) << "batch " << batch.step();
  EXPECT_ERROR(pipeline.next(), resource,
               "pipeline test: the consumer holds 9 batches, as many as it may; drop them or raise "
               "max_held_batches.");
  EXPECT_EQ(pipeline.stats().slots, 3 + 9);

  // After one is dropped it goes on, with the next batch, and the others are as they were.
  held.erase(held.begin() + 4);
  held.push_back(*pipeline.next());
  EXPECT_EQ(held.back().step(), 9);
  std::this_thread::sleep_for(20ms);
  for (const Batch& batch : held)
    EXPECT_TRUE(is_intact(batch)) << "batch " << batch.step();
  held.clear();
  for (int i = 10; i < 40; ++i) {
    const auto batch = pipeline.next();
    EXPECT_EQ(batch->step(), i);
    EXPECT_TRUE(is_intact(*batch));
  }
  EXPECT_EQ(pipeline.stats().slots, 3 + 9);
}

DEVICE_TEST(LeaseTest, TheEndOfAnEpochIsSeenWithAllBatchesHeld) {
  Spec spec = counting_spec(device());
  spec.max_held_batches = 4;
  Pipeline pipeline = Pipeline::from_spec(spec);
  std::vector<Batch> held;
  for (Batch& batch : pipeline.epoch(0))
    held.push_back(batch);
  EXPECT_EQ(held.size(), 4u);
  for (const Batch& batch : held)
    EXPECT_TRUE(is_intact(batch));
}

DEVICE_TEST(LeaseTest, AnArrayAloneHoldsItsBatch) {
  Pipeline pipeline = Pipeline::from_spec(many(device()));
  const Array x = (*pipeline.next())["x"];
  const Array rows = (*pipeline.next())["x"].slice(0, 2, 4);
  for (int i = 0; i < 20; ++i)
    ASSERT_TRUE(pipeline.next());
  const Context context = kit::context(device());
  for (std::int64_t i = 0; i < 6; ++i)
    EXPECT_EQ(kit::value(kit::to_host(x, context).view(), 3 * i), 10. * i);
  for (std::int64_t i = 0; i < 2; ++i)
    EXPECT_EQ(kit::value(kit::to_host(rows, context).view(), 3 * i), 10. * (6 + 2 + i));
}

DEVICE_TEST(LeaseTest, SlowConsumer) {
  Pipeline pipeline = Pipeline::from_spec(many(device(), 120));
  std::int64_t step = 0;
  for (Batch& batch : pipeline.epoch(0)) {
    std::this_thread::sleep_for(3ms);
    EXPECT_TRUE(is_intact(batch)) << "batch " << step;
    EXPECT_EQ(batch.step(), step++);
  }
  EXPECT_EQ(step, 20);
}

/// An array that a late copy on `stream` fills from the batch's array: the copy holds neither.
Array late_copy(const Array& from, const Stream& stream, std::chrono::milliseconds delay) {
  const Context context = kit::context(from.device());
  Array to = Array::empty(from.shape(), from.dtype(), context);
  context.stream.synchronize();
  stream.enqueue([delay] { std::this_thread::sleep_for(delay); });
  if (from.device().is_cuda()) {
    copy(from.view(), to.view(), stream);
  } else {  // on a CUDA stream a host function: the driver would read pageable memory in its own
            // time
    stream.enqueue(
        [from = from.view(), to = to.view()] { std::memcpy(to.data, from.data, from.bytes()); });
  }
  return to;
}

void expect_copied(const std::vector<Array>& copies,
                   const std::vector<std::vector<std::int64_t>>& ids) {
  ASSERT_EQ(copies.size(), 20u);
  for (std::size_t i = 0; i < copies.size(); ++i) {
    const Array host = kit::to_host(copies[i], kit::context(copies[i].device()));
    for (std::int64_t row = 0; row < host.shape()[0]; ++row) {
      ASSERT_EQ(kit::value(host.view(), 3 * row),
                CountingSource::value(ids[i][static_cast<std::size_t>(row)], 0))
          << "batch " << i << " was overwritten before it was copied";
    }
  }
}

/// Takes every batch with `next(stream)`, enqueues a late copy of it on `stream` and lets go of it
/// at once: reuse must wait for that copy. The same for a second stream that is told of with
/// `record_stream`.
void copy_late(Pipeline& pipeline, const Stream& stream, const std::optional<Stream>& second = {}) {
  std::vector<Array> copies, second_copies;
  std::vector<std::vector<std::int64_t>> ids;
  for (Batch& batch : pipeline.epoch(0, stream)) {
    ids.push_back(ids_of(batch));
    copies.push_back(late_copy(batch["x"], stream, 4ms));
    if (!second) continue;
    batch.record_stream(*second);
    batch.record_stream(*second);  // once is enough
    second_copies.push_back(late_copy(batch["x"], *second, 8ms));
  }
  stream.synchronize();
  expect_copied(copies, ids);
  if (!second) return;
  second->synchronize();
  expect_copied(second_copies, ids);
}

DEVICE_TEST(LeaseTest, ReuseWaitsForTheConsumersStream) {
  Pipeline pipeline = Pipeline::from_spec(many(device(), 120));
  copy_late(pipeline, Stream::create(device()));
}

DEVICE_TEST(LeaseTest, ReuseWaitsForAConsumerOnTheCpu) {
  // Also of a GPU pipeline: a CPU stream that waits for the batch, then copies it.
  Pipeline pipeline = Pipeline::from_spec(many(device(), 120));
  copy_late(pipeline, Stream::create(Device::cpu()));
}

TEST(LeaseTestCuda, ReuseOfHostMemoryWaitsForAGpu) {
  SKIP_WITHOUT(Device::cuda());
  const Watchdog watchdog;
  Pipeline pipeline = Pipeline::from_spec(many(Device::cpu(), 120));
  copy_late(pipeline, Stream::create(Device::cuda()));
}

DEVICE_TEST(LeaseTest, ReuseWaitsForRecordedStreams) {
  Pipeline pipeline = Pipeline::from_spec(many(device(), 120));
  copy_late(pipeline, Stream::create(device()), Stream::create(device()));
}

DEVICE_TEST(LeaseTest, AConsumerStreamThatFailedGivesItsSlotsBack) {
  if (device().is_cuda())
    GTEST_SKIP() << "a failed CUDA stream ends the process's use of the device";
  Pipeline pipeline = Pipeline::from_spec(many(device(), 120));
  const Stream stream = Stream::create(device());
  stream.enqueue([] { throw Error(ErrorKind::invalid, "the consumer's own"); });
  std::int64_t steps = 0;
  for (Batch& batch : pipeline.epoch(0, stream))
    steps += batch.valid();
  EXPECT_EQ(steps, 20);
  EXPECT_ERROR(stream.synchronize(), invalid, "the consumer's own");
}

DEVICE_TEST(LeaseTest, BatchesOutliveThePipeline) {
  auto memory = std::make_shared<CountingMemory>(device_memory(device()));
  Array x;
  {
    std::vector<Batch> held;
    {
      Pipeline pipeline = Pipeline::from_spec(many(device()), {.memory = memory});
      for (int i = 0; i < 3; ++i)
        held.push_back(*pipeline.next());
      x = held[1]["x"];
    }
    for (const Batch& batch : held)
      EXPECT_TRUE(is_intact(batch));
    EXPECT_GT(memory->current_bytes(), 0u);
    const Stream late = Stream::create(device());
    held[2].record_stream(late);
    late.synchronize();
  }
  EXPECT_EQ(kit::value(kit::to_host(x, kit::context(device())).view(), 0), 60);
  EXPECT_GT(memory->current_bytes(), 0u);
  x = Array();
  EXPECT_EQ(memory->current_bytes(), 0u);  // the last array took the last slot with it
}

DEVICE_TEST(LeaseTest, ConsumersWorkGoesOnAfterThePipelineIsGone) {
  const Stream stream = Stream::create(device());
  Gate gate;
  Array copied;
  {
    Pipeline pipeline = Pipeline::from_spec(many(device()));
    const auto batch = pipeline.next(stream);
    stream.enqueue([&] { gate.wait(); });
    copied = late_copy((*batch)["x"], stream, 0ms);
    if (device().is_cuda()) gate.open();  // on a GPU the memory's owner may wait for the stream
  }
  gate.open();
  stream.synchronize();
  EXPECT_EQ(kit::value(kit::to_host(copied, kit::context(device())).view(), 17), 52);
}

DEVICE_TEST(LeaseTest, TheLastReferenceMayGoOnAnyThread) {
  Pipeline pipeline = Pipeline::from_spec(many(device(), 1200));
  const Stream stream = Stream::create(device());
  const Stream on_host = Stream::create(Device::cpu());
  for (int i = 0; i < 60; ++i) {
    auto batch = pipeline.next(stream);
    ASSERT_TRUE(batch);
    Array x = (*batch)["x"];
    std::thread([x = std::move(x)]() mutable { x = Array(); }).join();
    if (i % 2 == 0) on_host.enqueue([batch = std::move(batch)] {});
    if (i % 8 == 7) on_host.synchronize();
  }
  on_host.synchronize();
}

DEVICE_TEST(LeaseTest, ATaskOfTheConsumersOwnStreamMayHoldTheLastReference) {
  for (int i = 0; i < 20; ++i) {
    std::promise<void> done;
    {
      auto pipeline = std::make_unique<Pipeline>(Pipeline::from_spec(many(device())));
      const Stream stream = Stream::create(Device::cpu());
      auto batch = std::make_shared<Batch>(*pipeline->next(stream));
      pipeline.reset();
      stream.enqueue([batch, &done]() mutable {
        batch.reset();
        done.set_value();
      });
      batch.reset();
    }
    done.get_future().wait();
  }
}

DEVICE_TEST(LeaseTest, PoisonShowsUseAfterRelease) {
  auto source = std::make_shared<CountingSource>(600);
  // The producer stands still in the third batch, so that nobody fills the slot that comes back
  Gate gate;
  source->on_read_ = [&](std::span<const std::int64_t> indices) {
    if (indices[0] >= 12) gate.wait();
  };
  Pipeline pipeline = Pipeline::from_spec(counting_spec(device(), source), {.poison = true});
  auto first = pipeline.next(), second = pipeline.next();
  const ArrayView stale = (*first)["x"].view();
  EXPECT_TRUE(is_intact(*first));
  first.reset();
  std::this_thread::sleep_for(20ms);  // on a GPU the copy stream does it
  for (const double value :
       kit::values(kit::to_host(Array(stale, nullptr), kit::context(device())))) {
    EXPECT_TRUE(std::isnan(value)) << value;
  }
  EXPECT_TRUE(is_intact(*second));
  gate.open();
  for (int i = 2; i < 20; ++i) {
    const auto batch = pipeline.next();
    EXPECT_TRUE(is_intact(*batch));
  }
}

DEVICE_TEST(LeaseTest, NamesWhatIsThere) {
  Pipeline pipeline = Pipeline::from_spec(many(device()));
  const auto batch = pipeline.next();
  EXPECT_ERROR((*batch)["labels"], invalid,
               "the batch has no field `labels`; it has `x`, `label`. Did you mean `label`?");
  const Batch empty;
  EXPECT_FALSE(empty.valid());
  EXPECT_ERROR(empty["x"], invalid, "the batch is empty; take one from `Pipeline::next`.");
  EXPECT_ERROR(empty.rows(), invalid, "the batch is empty; take one from `Pipeline::next`.");
}

// Dropped in the order of static destruction, after main.
std::vector<Batch>& kept_until_exit() {
  static std::vector<Batch> batches;
  return batches;
}

DEVICE_TEST(LeaseTest, ABatchMayLiveUntilTheProcessEnds) {
  kit::context(device());
  kept_until_exit();
  Pipeline pipeline = Pipeline::from_spec(many(device()));
  kept_until_exit().push_back(*pipeline.next());
  EXPECT_TRUE(is_intact(kept_until_exit().back()));
}

}  // namespace
}  // namespace forebay::test
