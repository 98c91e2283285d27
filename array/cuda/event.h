#pragma once

// Internal: events of CUDA devices.

#include <cuda_runtime_api.h>

#include <memory>
#include <mutex>

#include <forebay/array/stream_state.h>

namespace forebay::cuda {

/// One cudaEvent_t.
class CudaPoint final : public EventPoint {
 public:
  CudaPoint(int device, unsigned flags);
  ~CudaPoint() override;
  void wait() const override;
  void when_passed(Signal signal) const override;
  void record(cudaStream_t stream) const;
  /// True when the work before the last recording is done, or can never be (the device has failed).
  bool passed() const;
  cudaEvent_t event() const { return event_; }

 private:
  int device_;
  cudaEvent_t event_ = nullptr;
};

/// Holds one point, and takes a fresh one when it is recorded while somebody else still holds that.
class CudaEvent final : public EventState {
 public:
  /// `flags` as of cudaEventCreateWithFlags.
  CudaEvent(int device, unsigned flags);
  Device device() const override { return Device::cuda(device_); }
  void* native() const override;
  std::shared_ptr<const EventPoint> point() const override;
  void record(cudaStream_t stream);

 private:
  int device_;
  unsigned flags_;
  mutable std::mutex mutex_;
  std::shared_ptr<const CudaPoint> point_;
  bool recorded_ = false;
};

}  // namespace forebay::cuda
