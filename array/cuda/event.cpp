#include <forebay/array/cuda/event.h>

#include <forebay/array/cuda/backend.h>
#include <forebay/array/cuda/capture.h>
#include <forebay/array/cuda/check.h>
#include <forebay/array/cuda/device.h>
#include <forebay/array/error.h>

namespace forebay::cuda {

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
  // New holders come under the lock only, so one that goes meanwhile costs no more than a needless
  // event.
  if (point_.use_count() > 1) point_ = std::make_shared<CudaPoint>(device_, flags_);
  point_->record(stream);
  recorded_ = true;
}

std::shared_ptr<EventState> make_event(int device) {
  return std::make_shared<CudaEvent>(device, cudaEventDisableTiming | cudaEventBlockingSync);
}

}  // namespace forebay::cuda
