#include <ATen/Context.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <map>
#include <mutex>

#include <forebay/array/require.h>
#include <forebay/integrations/torch/torch.h>

namespace forebay::torch {
namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;

// The allocator's own statics are gone a little after this one: a deleter that runs later leaves
// its memory to the end of the process.
std::atomic<bool> exiting = false;
const struct Exit {
  ~Exit() { exiting = true; }
} at_exit;

void require_cuda(const char* what, Device device) {
  FOREBAY_REQUIRE(device.index < cuda_device_count(), unsupported, "{}: device {} is not there: {}",
                  what, to_string(device),
                  cuda_device_count() == 0
                      ? std::string(cuda_absence_reason())
                      : fmt::format("there are {} devices.", cuda_device_count()));
}

cudaStream_t native(const Stream& stream) { return static_cast<cudaStream_t>(stream.native()); }

class TorchMemory final : public MemoryResource {
 public:
  explicit TorchMemory(Device device) : device_(device) {}
  Device device() const override { return device_; }

  void* allocate(std::size_t bytes, const Stream& stream) override {
    try {
      const c10::cuda::CUDAGuard guard(static_cast<c10::DeviceIndex>(device_.index));
      return allocator::raw_alloc_with_stream(bytes, native(stream));
    } catch (const c10::OutOfMemoryError& error) {
      fail(ErrorKind::resource, "LibTorch's allocator has no {} bytes on {}: {}", bytes,
           to_string(device_), error.what_without_backtrace());
    } catch (const c10::Error& error) {
      fail(ErrorKind::device, "LibTorch's allocator failed to give {} bytes on {}: {}", bytes,
           to_string(device_), error.what_without_backtrace());
    }
  }

  void deallocate(void* data, std::size_t, const Stream& stream) noexcept override {
    if (data == nullptr || exiting) return;
    const auto index = static_cast<c10::DeviceIndex>(device_.index);
    try {
      // The allocator takes memory back in the order of the stream it was given for. `recordStream`
      // adds the stream that it is returned on, and does nothing if that is the same; it only looks
      // at a DataPtr of its own making.
      c10::DataPtr pointer(data, data, allocator::get()->raw_deleter(),
                           c10::Device(c10::DeviceType::CUDA, index));
      try {
        allocator::recordStream(pointer, c10::cuda::getStreamFromExternal(native(stream), index));
      } catch (...) {
        pointer.release_context();  // without an order the memory is lost rather than used twice
        throw;
      }
      pointer.release_context();
      allocator::raw_delete(data);
    } catch (const std::exception&) {
      // The device has failed; the next call on it says so.
    }
  }

 private:
  Device device_;
};

}  // namespace

Stream current_stream(Device device) {
  FOREBAY_REQUIRE(
      device.is_cuda(), unsupported,
      "current_stream: LibTorch has no stream on device {}; only CUDA devices have one.",
      to_string(device));
  require_cuda("current_stream", device);
  const auto stream = c10::cuda::getCurrentCUDAStream(static_cast<c10::DeviceIndex>(device.index));
  return Stream::borrow_cuda(stream.stream(), device.index);
}

MemoryPtr memory(Device device) {
  if (!device.is_cuda()) return host_memory();
  require_cuda("memory", device);
  static std::mutex mutex;
  static std::map<int, MemoryPtr> memories;
  const std::scoped_lock lock(mutex);
  MemoryPtr& memory = memories[device.index];
  if (memory == nullptr) {
    at::globalContext().lazyInitDevice(
        c10::DeviceType::CUDA);  // the allocator does not start by itself
    memory = std::make_shared<TorchMemory>(device);
  }
  return memory;
}

}  // namespace forebay::torch
