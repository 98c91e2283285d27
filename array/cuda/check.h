#pragma once

// Internal: for the .cpp files that call CUDA libraries.

#include <cuda_runtime_api.h>
#include <nvrtc.h>

namespace forebay::cuda {

[[noreturn]] void fail_call(cudaError_t status, const char* call);
[[noreturn]] void fail_call(nvrtcResult status, const char* call);

/// Throws unless `status`, returned by the function named `call`, is success.
/// Errors: device, "CUDA failed at `call`: <CUDA's text> (<its name>)."; resource when the device's
/// memory is exhausted, with how much of it was in use.
inline void check(cudaError_t status, const char* call) {
  if (status != cudaSuccess) [[unlikely]]
    fail_call(status, call);
}
inline void check(nvrtcResult status, const char* call) {
  if (status != NVRTC_SUCCESS) [[unlikely]]
    fail_call(status, call);
}

}  // namespace forebay::cuda
