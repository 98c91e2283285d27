// Streams of CUDA devices, owned and borrowed.

#include <exception>

#include <forebay/array/cuda/backend.h>
#include <forebay/array/cuda/capture.h>
#include <forebay/array/cuda/check.h>
#include <forebay/array/cuda/device.h>
#include <forebay/array/cuda/event.h>
#include <forebay/array/cuda/signal.h>
#include <forebay/array/error.h>

namespace forebay::cuda {
namespace {

/// Holds owners until a stream has passed a point. They are dropped in the threads that call it,
/// never in a host function, where a deleter could not call CUDA. One for all streams: an owner may
/// hold a handle of the stream that it is kept for, which would keep itself alive through a keeper
/// of that stream.
class Keeper {
 public:
  void keep(std::shared_ptr<const void> owner, int device, cudaStream_t stream) {
    auto point =
        std::make_unique<CudaPoint>(device, cudaEventDisableTiming | cudaEventBlockingSync);
    point->record(stream);
    const std::lock_guard lock(mutex_);
    entries_.push_back({std::move(point), std::move(owner)});
  }

  void drop_passed() {
    std::vector<Entry> passed;  // dropped after the lock: a deleter may come back here
    const std::lock_guard lock(mutex_);
    std::erase_if(entries_, [&](Entry& entry) {
      if (!entry.point->passed()) return false;
      passed.push_back(std::move(entry));
      return true;
    });
  }

 private:
  struct Entry {
    std::unique_ptr<CudaPoint> point;
    std::shared_ptr<const void> owner;
  };
  std::mutex mutex_;
  std::vector<Entry> entries_;
};

Keeper& keeper() {
  static auto& found = *new Keeper;  // streams may outlive main
  return found;
}

/// The first failure of a stream's host tasks.
class Failure {
 public:
  void run(const std::function<void()>& task) noexcept {
    if (get()) return;
    try {
      task();
    } catch (...) {
      const std::lock_guard lock(mutex_);
      first_ = std::current_exception();
    }
  }
  std::exception_ptr get() const {
    const std::lock_guard lock(mutex_);
    return first_;
  }

 private:
  mutable std::mutex mutex_;
  std::exception_ptr first_;
};

struct HostTask {
  std::function<void()> body;
  std::shared_ptr<Failure> failure;
  static void run(void* object) {
    const auto& task = *static_cast<const HostTask*>(object);
    task.failure->run(task.body);
  }
};

class CudaStream : public StreamState {
 public:
  CudaStream(cudaStream_t stream, int device) : stream_(stream), device_(device) {}

  Device device() const override { return Device::cuda(device_); }
  void* native() const override { return stream_; }

  void wait(const EventState& event) override {
    auto point = event.point();
    if (point == nullptr) return;
    if (event.device().is_cuda()) {
      const DeviceGuard guard(device_);
      check(cudaStreamWaitEvent(stream_, static_cast<const CudaPoint&>(*point).event(),
                                cudaEventWaitDefault),
            "cudaStreamWaitEvent");
    } else {
      const DeviceGuard guard(device_);
      auto word = signal_word();
      wait_for_word(stream_, *word);
      point->when_passed([word](const std::exception_ptr&) { signal(*word); });
      keep(word);
      enqueue([point = std::move(point)] { point->wait(); });  // has passed: takes over its failure
    }
  }

  void record(EventState& event) override { static_cast<CudaEvent&>(event).record(stream_); }

  void enqueue(std::function<void()> body) override {
    const auto task = std::make_shared<HostTask>(HostTask{std::move(body), failure_});
    {
      const DeviceGuard guard(device_);
      check(cudaLaunchHostFunc(stream_, HostTask::run, task.get()), "cudaLaunchHostFunc");
    }
    keep(task);
  }

  void keep(std::shared_ptr<const void> owner) override {
    const DeviceGuard guard(device_);
    if (is_capturing(stream_)) {  // the graph's replays need it, not this one pass
      (captured_owners != nullptr ? *captured_owners : captured_elsewhere_)
          .push_back(std::move(owner));
      return;
    }
    keeper().drop_passed();
    try {
      keeper().keep(owner, device_, stream_);
    } catch (...) {
      cudaStreamSynchronize(stream_);  // nothing else can tell when `owner` may go
      throw;
    }
  }

  void synchronize() override {
    {
      const DeviceGuard guard(device_);
      check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
    }
    keeper().drop_passed();
    if (const auto failure = failure_->get()) std::rethrow_exception(failure);
  }

 protected:
  cudaStream_t stream_;
  int device_;

 private:
  std::shared_ptr<Failure> failure_ = std::make_shared<Failure>();
  // By a capture that is not a Graph of ours; held until this stream is closed.
  Owners captured_elsewhere_;
};

class OwnedStream final : public CudaStream {
 public:
  using CudaStream::CudaStream;

  ~OwnedStream() override {
    try {
      const DeviceGuard guard(device_);
      cudaStreamSynchronize(stream_);
      keeper().drop_passed();
      cudaStreamDestroy(stream_);
    } catch (const Error&) {  // the process is ending, or the device has failed
    }
  }
};

}  // namespace

std::shared_ptr<StreamState> make_stream(int device) {
  const DeviceGuard guard(device);
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  return std::make_shared<OwnedStream>(stream, device);
}

std::shared_ptr<StreamState> borrow_stream(void* cuda_stream, int device) {
  return std::make_shared<CudaStream>(static_cast<cudaStream_t>(cuda_stream), device);
}

}  // namespace forebay::cuda
