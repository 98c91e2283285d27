#include <forebay/array/require.h>
#include <forebay/integrations/torch/torch.h>

// For a build without CUDA, or with a LibTorch without it.

namespace forebay::torch {

Stream current_stream(Device device) {
  FOREBAY_REQUIRE(
      device.is_cuda(), unsupported,
      "current_stream: LibTorch has no stream on device {}; only CUDA devices have one.",
      to_string(device));
  fail(ErrorKind::unsupported,
       "current_stream: device {} is not there: this build has no LibTorch with CUDA.",
       to_string(device));
}

MemoryPtr memory(Device device) {
  FOREBAY_REQUIRE(!device.is_cuda(), unsupported,
                  "memory: device {} is not there: this build has no LibTorch with CUDA.",
                  to_string(device));
  return host_memory();
}

}  // namespace forebay::torch
