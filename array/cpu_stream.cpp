// A CPU stream: a queue and the thread that works it off, inside an arena of its own.

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include <forebay/array/arena.h>
#include <forebay/array/require.h>
#include <forebay/array/stream_state.h>

namespace forebay {
namespace {

class CpuPoint final : public EventPoint {
 public:
  void wait() const override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return passed_; });
    if (failure_) std::rethrow_exception(failure_);
  }
  void when_passed(Signal signal) const override {
    {
      const std::lock_guard lock(mutex_);
      if (!passed_) {
        signals_.push_back(std::move(signal));
        return;
      }
    }
    signal(failure_);
  }
  void pass(std::exception_ptr failure) {
    std::vector<Signal> signals;
    {
      const std::lock_guard lock(mutex_);
      passed_ = true;
      failure_ = failure;
      signals.swap(signals_);
      changed_.notify_all();
    }
    for (const auto& signal : signals)
      signal(failure);
  }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool passed_ = false;
  std::exception_ptr failure_;
  mutable std::vector<Signal> signals_;
};

class CpuEvent final : public EventState {
 public:
  Device device() const override { return Device::cpu(); }
  std::shared_ptr<const EventPoint> point() const override {
    const std::lock_guard lock(mutex_);
    return point_;
  }
  void set(std::shared_ptr<const EventPoint> point) {
    const std::lock_guard lock(mutex_);
    point_ = std::move(point);
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const EventPoint> point_;
};

/// Shared by the handle and the thread, so that the thread can outlive the handle.
struct Queue {
  /// A task to run, or a point to pass.
  struct Item {
    std::function<void()> task;
    std::shared_ptr<CpuPoint> point;
  };

  explicit Queue(int num_threads) : arena(num_threads) {}

  void push(Item item) {
    {
      const std::lock_guard lock(mutex);
      items.push_back(std::move(item));
    }
    changed.notify_one();
  }

  /// Works until the queue is closed and empty. What a task held is free before the next item.
  void work() noexcept {
    for (;;) {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return closed || !items.empty(); });
      if (items.empty()) return;
      Item item = std::move(items.front());
      items.pop_front();
      lock.unlock();
      if (item.point) {
        item.point->pass(failure);
      } else {
        run(item.task);
      }
    }
  }

  void run(const std::function<void()>& task) noexcept {
    if (failure) return;
    try {
      task();
    } catch (...) {
      failure = std::current_exception();
    }
  }

  Arena arena;
  std::exception_ptr failure;  // of the thread only: others see it through the points
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Item> items;
  bool closed = false;
};

class CpuStream final : public StreamState {
 public:
  explicit CpuStream(int num_threads)
      : queue_(std::make_shared<Queue>(num_threads)), thread_([queue = queue_] {
          queue->arena.run([](void* object) { static_cast<Queue*>(object)->work(); }, queue.get());
        }) {}

  ~CpuStream() override {
    {
      const std::lock_guard lock(queue_->mutex);
      queue_->closed = true;
    }
    queue_->changed.notify_one();
    // A task that holds the last handle cannot wait for itself.
    if (queue_->arena.is_current()) {
      thread_.detach();
    } else {
      thread_.join();
    }
  }

  Device device() const override { return Device::cpu(); }

  void wait(const EventState& event) override {
    auto point = event.point();
    if (point == nullptr) return;
    if (event.device().is_cuda()) {
      // This stream's thread must not call CUDA: somebody who enqueues for a GPU that waits for
      // this very thread may be holding CUDA up, with a full queue.
      const auto passed = std::make_shared<CpuPoint>();
      point->when_passed(
          [passed](std::exception_ptr failure) { passed->pass(std::move(failure)); });
      point = passed;
    }
    queue_->push({[point = std::move(point)] { point->wait(); }, nullptr});
  }

  void record(EventState& event) override { static_cast<CpuEvent&>(event).set(push_point()); }

  void enqueue(std::function<void()> task) override { queue_->push({std::move(task), nullptr}); }

  void keep(std::shared_ptr<const void> owner) override {
    enqueue([owner = std::move(owner)] {});
  }

  void synchronize() override {
    FOREBAY_REQUIRE(
        !queue_->arena.is_current(), invalid,
        "a task of a CPU stream cannot synchronize that stream: it would wait for itself.");
    push_point()->wait();
  }

 private:
  std::shared_ptr<CpuPoint> push_point() {
    auto point = std::make_shared<CpuPoint>();
    queue_->push({nullptr, point});
    return point;
  }

  std::shared_ptr<Queue> queue_;
  std::thread thread_;
};

}  // namespace

std::shared_ptr<StreamState> make_cpu_stream(int num_threads) {
  FOREBAY_REQUIRE(num_threads >= 0, invalid,
                  "num_threads is {}; it must be 0 (every core) or more.", num_threads);
  return std::make_shared<CpuStream>(num_threads);
}

std::shared_ptr<EventState> make_cpu_event() { return std::make_shared<CpuEvent>(); }

}  // namespace forebay
