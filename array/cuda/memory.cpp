// Device pools, page-locked host memory, copies and fills.

#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include <forebay/array/cuda/backend.h>
#include <forebay/array/cuda/capture.h>
#include <forebay/array/cuda/check.h>
#include <forebay/array/cuda/device.h>
#include <forebay/array/require.h>

namespace forebay::cuda {
namespace {

cudaStream_t native(const Stream& stream) { return static_cast<cudaStream_t>(stream.native()); }

/// An explicit pool rather than the device's default one, so that other libraries' settings and
/// ours do not meet.
class DevicePool final : public MemoryResource {
 public:
  explicit DevicePool(int device) : device_(device) {
    const DeviceGuard guard(device_);
    cudaMemPoolProps properties{};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location = {cudaMemLocationTypeDevice, device_};
    check(cudaMemPoolCreate(&pool_, &properties), "cudaMemPoolCreate");
    std::uint64_t keep_everything = UINT64_MAX;
    check(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &keep_everything),
          "cudaMemPoolSetAttribute");
    int no = 0;  // reuse must not make one stream wait for another behind the plan's back
    check(cudaMemPoolSetAttribute(pool_, cudaMemPoolReuseAllowInternalDependencies, &no),
          "cudaMemPoolSetAttribute");
  }

  Device device() const override { return Device::cuda(device_); }

  void* allocate(std::size_t bytes, const Stream& stream) override {
    FOREBAY_REQUIRE(stream.device() == device(), invalid,
                    "memory of {} is given in the order of a stream on {}; this stream is on {}.",
                    to_string(device()), to_string(device()), to_string(stream.device()));
    if (bytes == 0) return nullptr;
    const DeviceGuard guard(device_);
    void* data = nullptr;
    cudaError_t status = cudaMallocFromPoolAsync(&data, bytes, pool_, native(stream));
    if (status == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      // What other streams have freed comes back when their work is done.
      if (cudaDeviceSynchronize() == cudaSuccess) {
        status = cudaMallocFromPoolAsync(&data, bytes, pool_, native(stream));
      }
    }
    if (status == cudaErrorMemoryAllocation) fail_exhausted(bytes);
    check(status, "cudaMallocFromPoolAsync");
    return data;
  }

  void deallocate(void* data, std::size_t, const Stream& stream) noexcept override {
    if (data == nullptr) return;
    try {
      const DeviceGuard guard(device_);
      if (cudaFreeAsync(data, native(stream)) != cudaSuccess) cudaGetLastError();
    } catch (const Error&) {  // the process is ending, or the device has failed: the memory is gone
                              // already
    }
  }

 private:
  [[noreturn]] void fail_exhausted(std::size_t bytes) const {
    cudaGetLastError();
    std::size_t free = 0, total = 0;
    cudaMemGetInfo(&free, &total);
    fail(ErrorKind::resource,
         "{} has no {} bytes of memory left: {:.1f} of {:.1f} GB were in use; use smaller or fewer "
         "arrays.",
         to_string(device()), bytes, static_cast<double>(total - free) / 1e9,
         static_cast<double>(total) / 1e9);
  }

  int device_;
  cudaMemPool_t pool_ = nullptr;
};

class PinnedMemory final : public MemoryResource {
 public:
  Device device() const override { return Device::cpu(); }

  void* allocate(std::size_t bytes, const Stream& stream) override {
    if (bytes == 0) return nullptr;
    const DeviceGuard guard(stream.device().is_cuda() ? stream.device().index : device_in_use());
    void* data = nullptr;
    const cudaError_t status = cudaHostAlloc(&data, bytes, cudaHostAllocPortable);
    if (status == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      fail(ErrorKind::resource,
           "{} bytes of host memory cannot be page-locked: the system has no more; use smaller "
           "batches or fewer "
           "slots.",
           bytes);
    }
    check(status, "cudaHostAlloc");
    return data;
  }

  void deallocate(void* data, std::size_t, const Stream& stream) noexcept override {
    if (data == nullptr) return;
    try {
      stream.keep(std::shared_ptr<void>(data, free_pinned));  // copies from it may be under way
    } catch (...) {  // `keep` has waited, and the memory is free
    }
  }

 private:
  static void free_pinned(void* data) {
    try {
      const DeviceGuard guard(device_in_use());
      if (cudaFreeHost(data) != cudaSuccess) cudaGetLastError();
    } catch (const Error&) {  // the process is ending
    }
  }
};

/// CUDA reads pageable memory when the copy is enqueued, not when the stream comes to it.
bool is_pageable(const void* host) {
  cudaPointerAttributes attributes{};
  if (cudaPointerGetAttributes(&attributes, host) != cudaSuccess) {
    cudaGetLastError();
    return true;
  }
  return attributes.type == cudaMemoryTypeUnregistered;
}

}  // namespace

MemoryPtr pinned_memory() {
  // arrays may outlive main
  static const auto& memory = *new MemoryPtr(std::make_shared<PinnedMemory>());
  return memory;
}

MemoryPtr device_memory(int device) {
  static std::mutex mutex;
  static auto& pools = *new std::vector<MemoryPtr>(static_cast<std::size_t>(device_count()));
  const std::lock_guard lock(mutex);
  MemoryPtr& pool = pools[static_cast<std::size_t>(device)];
  if (pool == nullptr) pool = std::make_shared<DevicePool>(device);
  return pool;
}

void copy_bytes(void* to, Device to_device, const void* from, Device from_device, std::size_t bytes,
                const Stream& stream) {
  if (bytes == 0) return;
  if (!to_device.is_cuda() && !from_device.is_cuda()) {
    stream.enqueue([=] { std::memcpy(to, from, bytes); });
    return;
  }
  const DeviceGuard guard(stream.device().index);
  if (to_device.is_cuda() && from_device.is_cuda() && to_device != from_device) {
    check(cudaMemcpyPeerAsync(to, to_device.index, from, from_device.index, bytes, native(stream)),
          "cudaMemcpyPeerAsync");
    return;
  }
  if (!from_device.is_cuda() && is_pageable(from) && !is_capturing(native(stream)))
    stream.synchronize();
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, native(stream)), "cudaMemcpyAsync");
}

void fill_bytes(void* data, Device device, unsigned char value, std::size_t bytes,
                const Stream& stream) {
  if (bytes == 0) return;
  if (!device.is_cuda()) {
    stream.enqueue([=] { std::memset(data, value, bytes); });
    return;
  }
  const DeviceGuard guard(stream.device().index);
  check(cudaMemsetAsync(data, value, bytes, native(stream)), "cudaMemsetAsync");
}

}  // namespace forebay::cuda
