#include <forebay/array/cuda/kernel.h>

#include <map>
#include <mutex>

#include <forebay/array/cuda/capture.h>
#include <forebay/array/cuda/check.h>
#include <forebay/array/cuda/compile_only.h>
#include <forebay/array/cuda/device.h>
#include <forebay/array/cuda/kernel_cache.h>
#include <forebay/array/require.h>
#include <forebay/array/stream_state.h>

namespace forebay::cuda {
namespace {

class LoadedKernel final : public Kernel {
 public:
  LoadedKernel(const KernelSource& source, Device device) : name_(source.name), device_(device) {
    const DeviceLimits& device_limits = limits(device);
    const std::string code = cached_cubin(source, device_limits.architecture);
    const DeviceGuard guard(device.index);
    const RelaxedCapture relaxed;  // loading is no part of what a graph in the making captures
    cudaLibrary_t library;  // never unloaded: launches may be in flight when the process ends
    check(cudaLibraryLoadData(&library, code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0),
          "cudaLibraryLoadData");
    check(cudaLibraryGetKernel(&kernel_, library, name_.c_str()), "cudaLibraryGetKernel");
    // Without this a launch may use 48 KiB of dynamic shared memory only.
    cudaFuncAttributes attributes;
    check(cudaFuncGetAttributes(&attributes, kernel_), "cudaFuncGetAttributes");
    const std::size_t most = device_limits.shared_memory_per_block - attributes.sharedSizeBytes;
    check(cudaKernelSetAttributeForDevice(kernel_, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                          static_cast<int>(most), device.index),
          "cudaKernelSetAttributeForDevice");
  }

  int resident_blocks(int threads, std::size_t shared_bytes) const override {
    const DeviceGuard guard(device_.index);
    int blocks = 0;
    check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel_, threads, shared_bytes),
          "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
    return blocks * limits(device_).multiprocessors;
  }

 private:
  void launch_array(const Stream& stream, Dim3 grid, Dim3 block, std::size_t shared_bytes,
                    const void* const* arguments, Start start) const override {
    FOREBAY_REQUIRE(
        stream.device() == device_, invalid,
        "kernel `{}` is loaded on {}, but the stream is on {}; load it for that device.", name_,
        to_string(device_), to_string(stream.device()));
    if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
    const DeviceGuard guard(device_.index);
    cudaLaunchConfig_t config{};
    config.gridDim = {grid.x, grid.y, grid.z};
    config.blockDim = {block.x, block.y, block.z};
    config.dynamicSmemBytes = shared_bytes;
    config.stream = static_cast<cudaStream_t>(stream.native());
    cudaLaunchAttribute early{};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    config.attrs = &early;
    config.numAttrs = start == Start::early && limits(device_).architecture >= 90 ? 1 : 0;
    const cudaError_t status = cudaLaunchKernelExC(&config, kernel_, const_cast<void**>(arguments));
    if (status != cudaSuccess) [[unlikely]] {
      fail_call(status, fmt::format("{}<<<({}, {}, {}), ({}, {}, {}), {}>>>", name_, grid.x, grid.y,
                                    grid.z, block.x, block.y, block.z, shared_bytes)
                            .c_str());
    }
  }

  std::string name_;
  Device device_;
  cudaKernel_t kernel_ = nullptr;
};

/// What load_kernel returns while a CompileOnly lives.
class CompiledKernel final : public Kernel {
 public:
  explicit CompiledKernel(std::string name) : name_(std::move(name)) {}
  int resident_blocks(int, std::size_t) const override {
    return limits(Device::cuda()).multiprocessors;
  }

 private:
  void launch_array(const Stream&, Dim3, Dim3, std::size_t, const void* const*,
                    Start) const override {
    fail(ErrorKind::invalid,
         "kernel `{}` was loaded while a CompileOnly lived; it cannot be launched.", name_);
  }
  std::string name_;
};

std::shared_ptr<const Kernel> compile_for_all(const KernelSource& source,
                                              CompileOnly::State& state) {
  for (int architecture : state.architectures)
    cached_cubin(source, architecture);
  const std::lock_guard lock(state.mutex);
  const bool is_new = state.compiled.insert(kernel_key(source, /*architecture=*/0)).second;
  if (is_new) state.sources.push_back(source);  // one key for all architectures
  return std::make_shared<CompiledKernel>(source.name);
}

/// A kernel of this process: whoever comes first loads it under the mutex, and others wait for
/// that.
struct Place {
  std::mutex mutex;
  std::shared_ptr<const Kernel> kernel;
};

Place& place_of(const std::string& key, int device) {
  static std::mutex mutex;
  // never destroyed, nor are the kernels
  static auto& places = *new std::map<std::pair<std::string, int>, Place>;
  const std::lock_guard lock(mutex);
  return places[{key, device}];
}

}  // namespace

std::shared_ptr<const Kernel> load_kernel(const KernelSource& source, Device device) {
  if (const auto state = compile_only()) return compile_for_all(source, *state);
  const int architecture = limits(device).architecture;
  FOREBAY_REQUIRE(architecture >= 80, unsupported,
                  "{} has compute capability {}.{}; kernels need 8.0 or newer. Use device cpu.",
                  to_string(device), architecture / 10, architecture % 10);
  Place& place = place_of(kernel_key(source, architecture), device.index);
  const std::lock_guard lock(place.mutex);
  if (!place.kernel) place.kernel = std::make_shared<LoadedKernel>(source, device);
  return place.kernel;
}

}  // namespace forebay::cuda
