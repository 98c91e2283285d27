#include <forebay/array/cuda/check.h>
#include <forebay/array/require.h>

namespace forebay::cuda {

void fail_call(cudaError_t status, const char* call) {
  cudaGetLastError();  // what is reported here must not be found again by another library's check
  std::size_t free = 0, total = 0;
  if (status == cudaErrorMemoryAllocation && cudaMemGetInfo(&free, &total) == cudaSuccess) {
    fail(ErrorKind::resource,
         "CUDA failed at `{}`: out of memory while {:.1f} of {:.1f} GB were in use.", call,
         static_cast<double>(total - free) / 1e9, static_cast<double>(total) / 1e9);
  }
  fail(status == cudaErrorMemoryAllocation ? ErrorKind::resource : ErrorKind::device,
       "CUDA failed at `{}`: {} ({}).", call, cudaGetErrorString(status), cudaGetErrorName(status));
}

void fail_call(nvrtcResult status, const char* call) {
  fail(ErrorKind::device, "NVRTC failed at `{}`: {}.", call, nvrtcGetErrorString(status));
}

}  // namespace forebay::cuda
