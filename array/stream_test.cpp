#include <forebay/array/stream.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <mutex>
#include <numeric>
#include <optional>
#include <thread>

#include <forebay/array/parallel.h>
#include <forebay/array/stream_state.h>

#include "kit/kit.h"

namespace forebay {
namespace {

using namespace std::chrono_literals;

/// Its task does not end before it is opened.
class Gate {
 public:
  void open() { promise_.set_value(); }
  std::function<void()> task() const {
    return [opened = opened_] { opened.wait(); };
  }

 private:
  std::promise<void> promise_;
  std::shared_future<void> opened_ = promise_.get_future().share();
};

/// What tasks wrote, in order.
class Log {
 public:
  std::function<void()> writes(int value) {
    return [this, value] {
      const std::lock_guard lock(mutex_);
      values_.push_back(value);
    };
  }
  std::vector<int> values() const {
    const std::lock_guard lock(mutex_);
    return values_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<int> values_;
};

class StreamTest : public kit::DeviceTest {};

DEVICE_TEST(StreamTest, RunsTasksInOrder) {
  const Stream stream = Stream::create(device());
  EXPECT_EQ(stream.device(), device());
  EXPECT_EQ(stream.native() != nullptr, device().is_cuda());
  std::vector<int> values;  // without a lock: the order is the stream's
  for (int i = 0; i < 500; ++i)
    stream.enqueue([&values, i] { values.push_back(i); });
  stream.synchronize();
  std::vector<int> want(500);
  std::iota(want.begin(), want.end(), 0);
  EXPECT_EQ(values, want);
}

DEVICE_TEST(StreamTest, EnqueueReturnsAtOnceAndSynchronizeWaits) {
  Gate gate;
  std::atomic<bool> done = false;
  const Stream stream = Stream::create(device());
  stream.enqueue(gate.task());
  stream.enqueue([&] { done = true; });
  EXPECT_FALSE(done);
  auto waiter = std::async(std::launch::async, [&] {
    stream.synchronize();
    return done.load();
  });
  EXPECT_EQ(waiter.wait_for(20ms), std::future_status::timeout);
  gate.open();
  EXPECT_TRUE(waiter.get());
}

DEVICE_TEST(StreamTest, ManyThreadsEnqueue) {
  const Stream stream = Stream::create(device());
  std::vector<std::vector<int>> values(4);
  {
    std::vector<std::jthread> threads;
    for (auto& own : values) {
      threads.emplace_back([&stream, &own] {
        for (int i = 0; i < 100; ++i)
          stream.enqueue([&own, i] { own.push_back(i); });
      });
    }
  }
  stream.synchronize();
  for (const auto& own : values) {
    EXPECT_EQ(own.size(), 100u);
    EXPECT_TRUE(std::ranges::is_sorted(own));
  }
}

DEVICE_TEST(StreamTest, EventPassesWithTheWorkBeforeIt) {
  Gate first, second;
  const Stream stream = Stream::create(device());
  Log log;
  stream.enqueue(first.task());
  stream.enqueue(log.writes(1));
  const Event event = stream.record();
  stream.enqueue(second.task());
  stream.enqueue(log.writes(2));
  auto waiter = std::async(std::launch::async, [&] {
    event.synchronize();
    return log.values();
  });
  EXPECT_EQ(waiter.wait_for(20ms), std::future_status::timeout);
  first.open();
  EXPECT_EQ(waiter.get(), std::vector<int>({1}));  // does not wait for what came later
  second.open();
  stream.synchronize();
}

DEVICE_TEST(StreamTest, EventsWithoutARecordHavePassed) {
  const Stream stream = Stream::create(device());
  const Event created = Event::create(device());
  EXPECT_TRUE(created.valid());
  EXPECT_FALSE(Event().valid());
  EXPECT_EQ(Event().native(), nullptr);
  EXPECT_EQ(created.native() != nullptr, device().is_cuda());
  for (const Event& event : {Event(), created}) {
    event.synchronize();
    stream.wait(event);
  }
  stream.synchronize();
}

DEVICE_TEST(StreamTest, RecordingAgainMovesTheEventOnlyForLaterWaits) {
  Gate first, second;
  Log log;
  const Stream producer = Stream::create(device());
  Event event = Event::create(device());
  producer.enqueue(first.task());
  producer.record(event);
  const Stream early = Stream::create(Device::cpu());
  early.wait(event);
  early.enqueue(log.writes(1));
  producer.enqueue(second.task());
  producer.record(event);
  const Stream late = Stream::create(Device::cpu());
  late.wait(event);
  late.enqueue(log.writes(2));
  std::this_thread::sleep_for(10ms);
  EXPECT_EQ(log.values(), std::vector<int>());
  first.open();
  early.synchronize();  // would hang, had the event moved under it
  EXPECT_EQ(log.values(), std::vector<int>({1}));
  second.open();
  late.synchronize();
  EXPECT_EQ(log.values(), std::vector<int>({1, 2}));
}

DEVICE_TEST(StreamTest, KeepsOwnersUntilTheWorkIsDone) {
  Gate gate;
  const Stream stream = Stream::create(device());
  auto owner = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = owner;
  stream.enqueue(gate.task());
  stream.keep(std::exchange(owner, nullptr));
  std::this_thread::sleep_for(5ms);
  EXPECT_FALSE(watch.expired());
  gate.open();
  stream.synchronize();
  EXPECT_TRUE(watch.expired());
}

DEVICE_TEST(StreamTest, TheLastHandleDrains) {
  int count = 0;
  auto owner = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = owner;
  {
    const Stream stream = Stream::create(device());
    for (int i = 0; i < 20; ++i) {
      stream.enqueue([&count] {
        std::this_thread::sleep_for(1ms);
        ++count;
      });
    }
    stream.keep(std::exchange(owner, nullptr));
  }
  EXPECT_EQ(count, 20);
  EXPECT_TRUE(watch.expired());
}

DEVICE_TEST(StreamTest, EventsOutliveTheirStream) {
  Event event;
  { event = Stream::create(device()).record(); }
  event.synchronize();
  const Stream other = Stream::create(device());
  other.wait(event);
  other.synchronize();
}

DEVICE_TEST(StreamTest, SynchronizeThrowsTheFirstFailure) {
  const Stream stream = Stream::create(device());
  stream.enqueue([] { throw Error(ErrorKind::io, "the first"); });
  stream.enqueue([] { throw Error(ErrorKind::invalid, "the second"); });
  EXPECT_ERROR(stream.synchronize(), io, "the first");
}

DEVICE_TEST(StreamTest, EqualityNamesTheQueue) {
  const Stream a = Stream::create(device()), b = Stream::create(device());
  const Stream copy = a;
  EXPECT_TRUE(a == copy);
  EXPECT_FALSE(a == b);
}

struct Pair {
  Device from, to;
};
class StreamPairTest : public testing::TestWithParam<Pair> {
 protected:
  static std::string absence() {
    const std::string reason = kit::absence(GetParam().from);
    return reason.empty() ? kit::absence(GetParam().to) : reason;
  }
};
std::vector<Pair> pairs() {
  std::vector<Pair> result;
  for (const Device from : kit::devices()) {
    for (const Device to : kit::devices())
      result.push_back({from, to});
  }
  return result;
}
INSTANTIATE_TEST_SUITE_P(Devices, StreamPairTest, testing::ValuesIn(pairs()), [](const auto& test) {
  return std::string(test.param.from.is_cuda() ? "cuda" : "cpu") + "_to_" +
         (test.param.to.is_cuda() ? "cuda" : "cpu");
});

TEST_P(StreamPairTest, AStreamWaitsForAnother) {
  if (const std::string reason = absence(); !reason.empty()) GTEST_SKIP() << reason;
  Gate gate;
  Log log;
  const Stream from = Stream::create(GetParam().from), to = Stream::create(GetParam().to);
  from.enqueue(gate.task());
  from.enqueue(log.writes(1));
  to.wait(from.record());
  to.enqueue(log.writes(2));
  std::this_thread::sleep_for(20ms);
  EXPECT_TRUE(log.values().empty());
  gate.open();
  to.synchronize();
  EXPECT_EQ(log.values(), std::vector<int>({1, 2}));
}

TEST_P(StreamPairTest, PingPong) {
  if (const std::string reason = absence(); !reason.empty()) GTEST_SKIP() << reason;
  const Stream a = Stream::create(GetParam().from), b = Stream::create(GetParam().to);
  std::vector<int> values;  // without a lock: the events order the two streams
  Event to_b = Event::create(a.device()), to_a = Event::create(b.device());
  for (int i = 0; i < 50; ++i) {
    a.enqueue([&values, i] { values.push_back(2 * i); });
    a.record(to_b);
    b.wait(to_b);
    b.enqueue([&values, i] { values.push_back(2 * i + 1); });
    b.record(to_a);
    a.wait(to_a);
  }
  a.synchronize();
  std::vector<int> want(100);
  std::iota(want.begin(), want.end(), 0);
  EXPECT_EQ(values, want);
}

TEST_P(StreamPairTest, FailureOfACpuStreamReachesThoseThatWait) {
  if (const std::string reason = absence(); !reason.empty()) GTEST_SKIP() << reason;
  if (GetParam().from.is_cuda()) return;
  const Stream from = Stream::create(GetParam().from), to = Stream::create(GetParam().to);
  from.enqueue([] { throw Error(ErrorKind::io, "x.npy is short"); });
  to.wait(from.record());
  EXPECT_ERROR(to.synchronize(), io, "x.npy is short");
}

TEST(CpuStream, FailureSkipsLaterTasksForGood) {
  const Stream stream = Stream::create(Device::cpu());
  Log log;
  auto owner = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = owner;
  stream.enqueue(log.writes(1));
  const Event before = stream.record();
  stream.enqueue([] { throw std::runtime_error("not an Error"); });
  stream.enqueue([owner = std::exchange(owner, nullptr), write = log.writes(2)] { write(); });
  const Event after = stream.record();
  before.synchronize();
  for (int round = 0; round < 2; ++round) {
    EXPECT_THROW(stream.synchronize(), std::runtime_error);
    EXPECT_THROW(after.synchronize(), std::runtime_error);
    stream.enqueue(log.writes(3));
  }
  EXPECT_EQ(log.values(), std::vector<int>({1}));
  EXPECT_TRUE(watch.expired());  // a skipped task lets go of what it holds
}

TEST(CpuStream, AWaitedFailureSkipsTooAndAnEarlierPointDoesNot) {
  const Stream failing = Stream::create(Device::cpu());
  const Event good = failing.record();
  failing.enqueue([] { throw Error(ErrorKind::io, "lost"); });
  const Event bad = failing.record();
  Log log;
  const Stream well = Stream::create(Device::cpu()), ill = Stream::create(Device::cpu());
  well.wait(good);
  well.enqueue(log.writes(1));
  well.synchronize();
  ill.wait(bad);
  ill.enqueue(log.writes(2));
  EXPECT_ERROR(ill.record().synchronize(), io, "lost");
  EXPECT_EQ(log.values(), std::vector<int>({1}));
}

TEST(CpuStream, TasksUseAnArenaOfTheGivenSize) {
  for (const int threads : {1, 3}) {
    const Stream stream = Stream::create(Device::cpu(), threads);
    int seen = 0;
    stream.enqueue([&] { seen = parallel_threads(); });
    stream.synchronize();
    EXPECT_EQ(seen, threads);
  }
}

TEST(CpuStream, OneThreadMeansOneThread) {
  const Stream stream = Stream::create(Device::cpu(), 1);
  std::atomic<bool> same = true;
  stream.enqueue([&] {
    const auto thread = std::this_thread::get_id();
    parallel_for(1000, 1, [&](std::int64_t, std::int64_t) {
      if (std::this_thread::get_id() != thread) same = false;
    });
  });
  stream.synchronize();
  EXPECT_TRUE(same);
}

TEST(CpuStream, ATaskMayEnqueueOnItsOwnStream) {
  const Stream stream = Stream::create(Device::cpu());
  std::promise<void> second;
  stream.enqueue([&] { stream.enqueue([&] { second.set_value(); }); });
  EXPECT_EQ(second.get_future().wait_for(10s), std::future_status::ready);
}

TEST(CpuStream, ATaskMayHoldTheLastHandle) {
  Gate gate;
  std::promise<void> finished;
  {
    const Stream stream = Stream::create(Device::cpu());
    stream.enqueue([held = stream, wait = gate.task()] { wait(); });
    stream.enqueue([&] { finished.set_value(); });  // drained even so
  }
  gate.open();
  ASSERT_EQ(finished.get_future().wait_for(10s), std::future_status::ready);
}

TEST(CpuStream, AParallelBodyMayDropTheLastHandle) {
  for (int round = 0; round < 20; ++round) {
    Gate gate;
    std::promise<void> finished;
    auto handle = std::make_shared<std::optional<Stream>>(Stream::create(Device::cpu(), 2));
    (*handle)->enqueue(gate.task());
    (*handle)->enqueue([handle] {
      std::atomic<std::int64_t> left = 64;
      parallel_for(64, 1, [&](std::int64_t begin, std::int64_t end) {
        // Whoever comes last, on whatever thread, drops it.
        if (left.fetch_sub(end - begin) == end - begin) handle->reset();
      });
    });
    (*handle)->enqueue([&] { finished.set_value(); });
    gate.open();
    ASSERT_EQ(finished.get_future().wait_for(10s), std::future_status::ready);
  }
}

TEST(CpuStream, ATaskCannotSynchronizeItsOwnStream) {
  const Stream stream = Stream::create(Device::cpu());
  stream.enqueue([&] { stream.synchronize(); });
  EXPECT_ERROR(stream.synchronize(), invalid,
               "a task of a CPU stream cannot synchronize that stream: it would wait for itself.");
}

TEST(CpuStream, RefusesANegativeThreadCount) {
  EXPECT_ERROR(Stream::create(Device::cpu(), -1), invalid,
               "num_threads is -1; it must be 0 (every core) or more.");
}

TEST(CudaStream, RefusesAnEventOfAnotherDevice) {
  SKIP_WITHOUT(Device::cuda());
  Event event = Event::create(Device::cpu());
  EXPECT_ERROR(Stream::create(Device::cuda()).record(event), invalid,
               "an event of cpu cannot be recorded on a stream of cuda:0; create it on the "
               "stream's device.");
}

TEST(CudaStream, BorrowsAStreamOfSomebodyElse) {
  SKIP_WITHOUT(Device::cuda());
  const Stream owner = Stream::create(Device::cuda());
  int value = 0;
  {
    const Stream borrowed = Stream::borrow_cuda(owner.native(), 0);
    EXPECT_TRUE(borrowed == owner);
    EXPECT_EQ(borrowed.native(), owner.native());
    borrowed.enqueue([&] { value = 1; });
  }
  owner.synchronize();
  EXPECT_EQ(value, 1);
  const Stream legacy = Stream::borrow_cuda(nullptr, 0);
  legacy.enqueue([&] { value = 2; });
  legacy.synchronize();
  EXPECT_EQ(value, 2);
}

TEST(DeviceNames, Known) {
  EXPECT_EQ(device_from_name("cpu"), Device::cpu());
  const bool here = cuda_device_count() > 0;
  EXPECT_EQ(device_from_name("auto"), here ? Device::cuda() : Device::cpu());
  EXPECT_EQ(std::string(cuda_absence_reason()).empty(), here);
}

TEST(DeviceNames, KnownCuda) {
  SKIP_WITHOUT(Device::cuda());
  EXPECT_EQ(device_from_name("cuda"), Device::cuda());
  EXPECT_EQ(device_from_name("cuda:0"), Device::cuda(0));
}

TEST(DeviceNames, Unknown) {
  for (const char* name : {"gpu", "cuda:", "cuda:-1", "cuda:1x", "CPU", ""}) {
    EXPECT_ERROR(device_from_name(name), invalid,
                 "device `" + std::string(name) + "` is not known; use auto, cpu, cuda or cuda:N.");
    EXPECT_EQ(kit::caught([&] { device_from_name(name, Presence::not_needed); }).kind,
              ErrorKind::invalid);
  }
}

TEST(DeviceNames, NotHere) {
  EXPECT_EQ(missing_device_text(Device::cuda(0), 0, "no CUDA driver is installed"),
            "device `cuda:0` is not here: no CUDA driver is installed; use cpu.");
  EXPECT_EQ(missing_device_text(Device::cuda(1), 1, ""),
            "device `cuda:1` is not here: 1 CUDA device found; use cuda:0 or cpu.");
  EXPECT_EQ(missing_device_text(Device::cuda(8), 4, ""),
            "device `cuda:8` is not here: 4 CUDA devices found; use cuda:0 to cuda:3, or cpu.");
  const std::string text =
      missing_device_text(Device::cuda(99), cuda_device_count(), cuda_absence_reason());
  EXPECT_ERROR(device_from_name("cuda:99"), unsupported, text);
  EXPECT_EQ(device_from_name("cuda:99", Presence::not_needed), Device::cuda(99));
  EXPECT_ERROR(Stream::create(Device::cuda(99)), unsupported, text);
  EXPECT_ERROR(Event::create(Device::cuda(99)), unsupported, text);
  EXPECT_ERROR(Stream::borrow_cuda(nullptr, 99), unsupported, text);
}

}  // namespace
}  // namespace forebay
