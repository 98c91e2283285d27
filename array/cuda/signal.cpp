#include <forebay/array/cuda/signal.h>

#include <cuda.h>  // types only: libcuda is not linked

#include <atomic>
#include <mutex>
#include <vector>

#include <forebay/array/cuda/check.h>
#include <forebay/array/cuda/device.h>

namespace forebay::cuda {
namespace {

/// Blocks of page-locked words, never freed: freeing waits for the device.
class Words {
 public:
  std::uint32_t* take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) grow();
    std::uint32_t* const word = free_.back();
    free_.pop_back();
    std::atomic_ref(*word).store(0, std::memory_order_release);
    return word;
  }
  void put_back(std::uint32_t* word) {
    const std::lock_guard lock(mutex_);
    free_.push_back(word);  // has room: see grow
  }

 private:
  void grow() {
    constexpr std::size_t kWords = 1024;
    void* block = nullptr;
    check(cudaHostAlloc(&block, kWords * sizeof(std::uint32_t),
                        cudaHostAllocPortable | cudaHostAllocMapped),
          "cudaHostAlloc");
    words_ += kWords;
    free_.reserve(words_);
    for (std::size_t i = 0; i < kWords; ++i)
      free_.push_back(static_cast<std::uint32_t*>(block) + i);
  }

  std::mutex mutex_;
  std::vector<std::uint32_t*> free_;
  std::size_t words_ = 0;
};

}  // namespace

std::shared_ptr<std::uint32_t> signal_word() {
  static auto& words = *new Words;  // streams may outlive main
  return {words.take(), [](std::uint32_t* word) { words.put_back(word); }};
}

void signal(std::uint32_t& word) { std::atomic_ref(word).store(1, std::memory_order_release); }

void wait_for_word(cudaStream_t stream, const std::uint32_t& word) {
  using WaitValue = CUresult(CUstream, CUdeviceptr, cuuint32_t, unsigned);
  static const auto wait_value =
      reinterpret_cast<WaitValue*>(driver_function("cuStreamWaitValue32"));
  // Page-locked memory has one address for host and device.
  check(static_cast<cudaError_t>(
            wait_value(stream, reinterpret_cast<CUdeviceptr>(&word), 1, CU_STREAM_WAIT_VALUE_GEQ)),
        "cuStreamWaitValue32");
}

}  // namespace forebay::cuda
