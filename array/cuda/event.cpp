#include <forebay/array/cuda/event.h>

#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include <forebay/array/cuda/backend.h>
#include <forebay/array/cuda/capture.h>
#include <forebay/array/cuda/check.h>
#include <forebay/array/cuda/device.h>
#include <forebay/array/error.h>

namespace forebay::cuda {
namespace {

/// Streams that each wait for one event at a time, so that no wait is behind another. Never
/// destroyed.
class Helpers {
 public:
  cudaStream_t take(int device) {
    {
      const std::lock_guard lock(mutex_);
      auto& idle = idle_[device];
      if (!idle.empty()) {
        const cudaStream_t stream = idle.back();
        idle.pop_back();
        return stream;
      }
    }
    cudaStream_t stream = nullptr;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    return stream;
  }
  void put_back(int device, cudaStream_t stream) {
    const std::lock_guard lock(mutex_);
    idle_[device].push_back(stream);
  }

 private:
  std::mutex mutex_;
  std::map<int, std::vector<cudaStream_t>> idle_;
};

Helpers& helpers() {
  static auto& found = *new Helpers;
  return found;
}

/// A helper that could not be given its work may be waiting already: nobody else gets it.
struct Discard {
  void operator()(cudaStream_t stream) const { cudaStreamDestroy(stream); }
};
using HelperPtr = std::unique_ptr<std::remove_pointer_t<cudaStream_t>, Discard>;

/// What CUDA calls when a helper has passed the event.
struct Call {
  EventPoint::Signal signal;
  int device;

  static void CUDART_CB run(cudaStream_t stream, cudaError_t status, void* object) {
    const std::unique_ptr<Call> call(static_cast<Call*>(object));
    std::exception_ptr failure;
    if (status != cudaSuccess) {
      failure = std::make_exception_ptr(
          Error(ErrorKind::device,
                std::string("CUDA failed before an event: ") + cudaGetErrorString(status)));
    }
    call->signal(failure);
    helpers().put_back(call->device, stream);
  }
};

}  // namespace

CudaPoint::CudaPoint(int device, unsigned flags) : device_(device) {
  const DeviceGuard guard(device_);
  check(cudaEventCreateWithFlags(&event_, flags), "cudaEventCreateWithFlags");
}

CudaPoint::~CudaPoint() {
  try {
    const DeviceGuard guard(device_);
    cudaEventDestroy(event_);
  } catch (const Error&) {  // the process is ending, or the device has failed
  }
}

void CudaPoint::wait() const {
  const DeviceGuard guard(device_);
  check(cudaEventSynchronize(event_), "cudaEventSynchronize");
}

void CudaPoint::when_passed(Signal signal) const {
  const DeviceGuard guard(device_);
  const RelaxedCapture relaxed;
  auto call = std::make_unique<Call>(Call{std::move(signal), device_});
  HelperPtr helper(helpers().take(device_));
  check(cudaStreamWaitEvent(helper.get(), event_, cudaEventWaitDefault), "cudaStreamWaitEvent");
  // Not cudaLaunchHostFunc: that calls nobody after the device has failed, and who waits would
  // wait for good.
  check(cudaStreamAddCallback(helper.get(), Call::run, call.get(), 0), "cudaStreamAddCallback");
  call.release();
  helper.release();  // `Call::run` puts it back
}

void CudaPoint::record(cudaStream_t stream) const {
  const DeviceGuard guard(device_);
  check(cudaEventRecord(event_, stream), "cudaEventRecord");
}

bool CudaPoint::passed() const {
  const DeviceGuard guard(device_);
  const RelaxedCapture relaxed;
  const cudaError_t status = cudaEventQuery(event_);
  if (status != cudaSuccess) cudaGetLastError();
  return status != cudaErrorNotReady;
}

CudaEvent::CudaEvent(int device, unsigned flags)
    : device_(device), flags_(flags), point_(std::make_shared<CudaPoint>(device, flags)) {}

void* CudaEvent::native() const {
  const std::lock_guard lock(mutex_);
  return point_->event();
}

std::shared_ptr<const EventPoint> CudaEvent::point() const {
  const std::lock_guard lock(mutex_);
  return recorded_ ? point_ : nullptr;
}

void CudaEvent::record(cudaStream_t stream) {
  const std::lock_guard lock(mutex_);
  // New holders come under the lock only, so one that goes meanwhile costs no more than a
  // needless event.
  if (point_.use_count() > 1) point_ = std::make_shared<CudaPoint>(device_, flags_);
  point_->record(stream);
  recorded_ = true;
}

std::shared_ptr<EventState> make_event(int device) {
  return std::make_shared<CudaEvent>(device, cudaEventDisableTiming | cudaEventBlockingSync);
}

}  // namespace forebay::cuda
