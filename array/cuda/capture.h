#pragma once

// Internal: what the capture of a graph means for the calls made meanwhile.

#include <cuda_runtime_api.h>

#include <memory>
#include <vector>

namespace forebay::cuda {

using Owners = std::vector<std::shared_ptr<const void>>;

/// What the graph that this thread is capturing must hold while it can be replayed; null
/// outside a capture.
inline thread_local Owners* captured_owners = nullptr;

/// True while work put on `stream` goes into a graph. False when CUDA cannot tell: the next call on
/// such a stream fails.
inline bool is_capturing(cudaStream_t stream) noexcept {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  if (cudaStreamIsCapturing(stream, &status) == cudaSuccess)
    return status != cudaStreamCaptureStatusNone;
  cudaGetLastError();
  return false;
}

/// Allows calls that know nothing of the capture in progress, which CUDA would answer by ending it.
class RelaxedCapture {
 public:
  RelaxedCapture() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  ~RelaxedCapture() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

}  // namespace forebay::cuda
