// What only a GPU can show: streams, and LibTorch's allocator.

#include <forebay/integrations/torch/torch.h>

#include <ATen/cuda/Sleep.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <ATen/ATen.h>

#include <chrono>
#include <thread>

#include "kit/kit.h"

namespace forebay {
namespace {

/// About a fifth of a second of the current stream, in clock cycles.
constexpr std::int64_t kLong = 400'000'000;

/// More than one slot's worth of batches, so that slots must be reused; poison shows when one is
/// too early.
Pipeline counting_pipeline(int samples = 4096) {
  const Array rows = kit::generate({samples, 256}, Dtype::i32,
                                   [](std::int64_t i) { return static_cast<double>(i); });
  return Pipeline::build()
      .source(array_source({{"x", rows}}))
      .batch_size(64)
      .device(Device::cuda())
      .normalize({.mean = 0.0, .std = 0.5})
      .create({.poison = true});
}

at::Tensor wanted(const torch::TensorBatch& batch) {
  const std::int64_t first = batch.batch().step() * 64 * 256;
  return 2 * at::arange(first, first + 64 * 256, at::kFloat).reshape({64, 256});
}

TEST(TorchCudaStream, IsTheCurrentOneOfTheThread) {
  SKIP_WITHOUT(Device::cuda());
  EXPECT_EQ(torch::current_stream(Device::cuda()).native(),
            c10::cuda::getDefaultCUDAStream().stream());
  const auto side = c10::cuda::getStreamFromPool();
  const c10::cuda::CUDAStreamGuard guard(side);
  EXPECT_EQ(torch::current_stream(Device::cuda()).native(), side.stream());
}

TEST(TorchCudaStream, NamesADeviceThatIsNotThere) {
  SKIP_WITHOUT(Device::cuda());
  const int count = cuda_device_count();
  const std::string text = "device cuda:" + std::to_string(count) + " is not there: there are " +
                           std::to_string(count) + " devices.";
  EXPECT_ERROR(torch::current_stream(Device::cuda(count)), unsupported, "current_stream: " + text);
  EXPECT_ERROR(torch::memory(Device::cuda(count)), unsupported, "memory: " + text);
}

TEST(TorchCudaMemory, IsLibTorchsOwn) {
  SKIP_WITHOUT(Device::cuda());
  const MemoryPtr memory = torch::memory(Device::cuda());
  EXPECT_EQ(memory, torch::memory(Device::cuda()));
  EXPECT_EQ(memory->device(), Device::cuda());
  const Stream stream = Stream::create(Device::cuda());
  const auto allocated = [] {
    using c10::CachingAllocator::StatType;
    return c10::cuda::CUDACachingAllocator::getDeviceStats(0)
        .allocated_bytes[static_cast<std::size_t>(StatType::AGGREGATE)]
        .current;
  };
  const auto before = allocated();
  void* data = memory->allocate(3 << 20, stream);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data) % 256, 0u);
  EXPECT_EQ(allocated(), before + (3 << 20));
  memory->deallocate(data, 3 << 20, stream);
  EXPECT_EQ(allocated(), before);
  EXPECT_EQ(memory->allocate(0, stream), nullptr);
  memory->deallocate(nullptr, 0, stream);
}

TEST(TorchCudaMemory, SaysHowMuchItDoesNotHave) {
  SKIP_WITHOUT(Device::cuda());
  const Stream stream = Stream::create(Device::cuda());
  const kit::Caught caught =
      kit::caught([&] { torch::memory(Device::cuda())->allocate(std::size_t{1} << 50, stream); });
  EXPECT_EQ(static_cast<int>(caught.kind), static_cast<int>(ErrorKind::resource));
  EXPECT_TRUE(
      caught.text.starts_with("LibTorch's allocator has no 1125899906842624 bytes on cuda:0: "))
      << caught.text;
}

TEST(TorchCudaMemory, WaitsForTheStreamThatItIsReturnedOn) {
  SKIP_WITHOUT(Device::cuda());
  const MemoryPtr memory = torch::memory(Device::cuda());
  const Stream owner = Stream::create(Device::cuda());
  const auto side = c10::cuda::getStreamFromPool();
  constexpr std::size_t kBytes = 5 << 20;
  void* first = memory->allocate(kBytes, owner);
  {
    const c10::cuda::CUDAStreamGuard guard(side);
    at::cuda::sleep(kLong);
  }
  memory->deallocate(first, kBytes, Stream::borrow_cuda(side.stream(), 0));
  void* second = memory->allocate(kBytes, owner);  // `side` has not passed yet
  EXPECT_FALSE(side.query());
  EXPECT_NE(second, first);
  side.synchronize();
  memory->deallocate(second, kBytes, owner);
}

TEST(TorchCudaHandOff, TheHostDoesNotWaitForTheDevice) {
  SKIP_WITHOUT(Device::cuda());
  Pipeline pipeline = counting_pipeline();
  // Starts the pipeline, and what LibTorch starts on first use.
  (*torch::next(pipeline))["x"].clone();
  at::cuda::sleep(1);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const auto stream = c10::cuda::getCurrentCUDAStream();
  stream.synchronize();
  at::cuda::sleep(kLong);
  const auto batch = torch::next(pipeline);
  const at::Tensor copy = (*batch)["x"].clone();
  EXPECT_FALSE(stream.query());  // still asleep: nothing above waited for it
  EXPECT_TRUE(copy.cpu().equal(wanted(*batch)));
}

TEST(TorchCudaHandOff, ASlotIsReusedBehindASlowConsumer) {
  SKIP_WITHOUT(Device::cuda());
  Pipeline pipeline = counting_pipeline();
  std::vector<std::pair<at::Tensor, at::Tensor>> copies;
  for (int i = 0; i < 12; ++i) {
    auto batch = torch::next(pipeline);
    if (i % 4 == 0) at::cuda::sleep(kLong);
    copies.emplace_back((*batch)["x"].clone(), wanted(*batch));
    batch.reset();  // its slot goes back while the clone above has not run yet
    std::this_thread::sleep_for(
        std::chrono::milliseconds(20));  // the pipeline would poison and fill it now
  }
  for (const auto& [got, want] : copies)
    EXPECT_TRUE(got.cpu().equal(want));
}

TEST(TorchCudaHandOff, RecordStreamCoversAConsumerOnAnotherStream) {
  SKIP_WITHOUT(Device::cuda());
  Pipeline pipeline = counting_pipeline();
  const auto side = c10::cuda::getStreamFromPool();
  std::vector<std::pair<at::Tensor, at::Tensor>> copies;
  for (int i = 0; i < 8; ++i) {
    auto batch = torch::next(pipeline);
    {
      const c10::cuda::CUDAStreamGuard guard(side);
      batch->record_stream(torch::current_stream(Device::cuda()));
      at::cuda::sleep(kLong / 4);
      copies.emplace_back((*batch)["x"].clone(), wanted(*batch));
    }
    batch.reset();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  side.synchronize();
  for (const auto& [got, want] : copies)
    EXPECT_TRUE(got.cpu().equal(want));
}

TEST(TorchCudaHandOff, ABatchTakenUnderAGuardFollowsThatStream) {
  SKIP_WITHOUT(Device::cuda());
  Pipeline pipeline = counting_pipeline();
  const auto side = c10::cuda::getStreamFromPool();
  std::vector<std::pair<at::Tensor, at::Tensor>> copies;
  {
    const c10::cuda::CUDAStreamGuard guard(side);
    for (auto& batch : torch::batches(pipeline, 0)) {
      if (batch.batch().step() % 16 == 0) at::cuda::sleep(kLong / 2);
      copies.emplace_back(batch["x"].clone(), wanted(batch));
    }
  }
  side.synchronize();
  ASSERT_EQ(copies.size(), 64u);
  for (const auto& [got, want] : copies)
    EXPECT_TRUE(got.cpu().equal(want));
}

TEST(TorchCudaHandOff, SlotsLieInLibTorchsPoolAndGoBackToIt) {
  SKIP_WITHOUT(Device::cuda());
  const auto allocated = [] {
    using c10::CachingAllocator::StatType;
    return c10::cuda::CUDACachingAllocator::getDeviceStats(0)
        .allocated_bytes[static_cast<std::size_t>(StatType::AGGREGATE)]
        .current;
  };
  torch::memory(Device::cuda());
  const auto before = allocated();
  at::Tensor last;
  {
    Pipeline pipeline = counting_pipeline();
    for (auto& batch : torch::batches(pipeline, 0))
      last = batch["x"];
    EXPECT_GE(allocated(), before + 3 * 64 * 256 * 4);
  }
  EXPECT_GT(allocated(), before);
  EXPECT_TRUE(last.cpu().defined());
  last.reset();
  EXPECT_EQ(allocated(), before);
}

}  // namespace
}  // namespace forebay
