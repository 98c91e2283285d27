#include <forebay/array/memory.h>

#include <algorithm>
#include <cstring>
#include <future>
#include <thread>

#include <forebay/array/array.h>
#include <forebay/array/require.h>

#include "kit/kit.h"

// Asked for too much, the sanitizers' allocators shall return null as others do.
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }
extern "C" const char* __tsan_default_options() { return "allocator_may_return_null=1"; }

namespace forebay {
namespace {

/// Takes the calls and keeps them; hands out host memory.
class Recorder final : public MemoryResource {
 public:
  Device device() const override { return Device::cpu(); }
  void* allocate(std::size_t bytes, const Stream& stream) override {
    if (bytes > 1000) fail(ErrorKind::resource, "the recorder is full");
    ++live;
    streams.push_back(stream);
    return host_memory()->allocate(bytes, stream);
  }
  void deallocate(void* data, std::size_t bytes, const Stream& stream) noexcept override {
    --live;
    streams.push_back(stream);
    host_memory()->deallocate(data, bytes, stream);
  }
  int live = 0;
  std::vector<Stream> streams;
};

struct Kind {
  const char* name;
  Device device;  // that it needs
  MemoryPtr (*make)();
};
class MemoryTest : public testing::TestWithParam<Kind> {};
INSTANTIATE_TEST_SUITE_P(Kinds, MemoryTest,
                         testing::Values(Kind{"host", Device::cpu(), host_memory},
                                         Kind{"cuda_pinned", Device::cuda(), pinned_memory},
                                         Kind{"cuda_pool", Device::cuda(),
                                              [] { return device_memory(Device::cuda()); }}),
                         [](const auto& test) { return std::string(test.param.name); });

TEST_P(MemoryTest, AlignedAndDisjoint) {
  SKIP_WITHOUT(GetParam().device);
  const MemoryPtr memory = GetParam().make();
  const Stream stream = Stream::create(GetParam().device);
  std::vector<std::pair<char*, std::size_t>> blocks;
  for (const std::size_t bytes : {1, 255, 256, 257, 100'000, 1 << 20}) {
    auto* const data = static_cast<char*>(memory->allocate(bytes, stream));
    ASSERT_NE(data, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data) % 256, 0u);
    for (const auto& [other, size] : blocks)
      EXPECT_TRUE(data + bytes <= other || other + size <= data);
    fill_bytes({data, Dtype::u8, memory->device(), {bytes}, {1}}, 0xff, stream);
    blocks.emplace_back(data, bytes);
  }
  stream.synchronize();
  for (const auto& [data, bytes] : blocks)
    memory->deallocate(data, bytes, stream);
  stream.synchronize();
}

TEST_P(MemoryTest, NullForNothing) {
  SKIP_WITHOUT(GetParam().device);
  const MemoryPtr memory = GetParam().make();
  const Stream stream = Stream::create(GetParam().device);
  EXPECT_EQ(memory->allocate(0, stream), nullptr);
  memory->deallocate(nullptr, 0, stream);
}

TEST_P(MemoryTest, FromManyThreads) {
  SKIP_WITHOUT(GetParam().device);
  const MemoryPtr memory = GetParam().make();
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        const Stream stream = Stream::create(GetParam().device);
        for (std::size_t bytes = 1; bytes < 100'000; bytes *= 3) {
          memory->deallocate(memory->allocate(bytes, stream), bytes, stream);
        }
        stream.synchronize();
      });
    }
  }
}

TEST_P(MemoryTest, OnePerProcess) {
  SKIP_WITHOUT(GetParam().device);
  EXPECT_EQ(GetParam().make(), GetParam().make());
}

TEST(Memory, Devices) {
  EXPECT_EQ(host_memory()->device(), Device::cpu());
  EXPECT_EQ(pinned_memory()->device(), Device::cpu());
  EXPECT_EQ(device_memory(Device::cpu()), host_memory());
  EXPECT_EQ(pinned_memory() == host_memory(), cuda_device_count() == 0);
}

TEST(Memory, DeviceOfACudaPool) {
  SKIP_WITHOUT(Device::cuda());
  EXPECT_EQ(device_memory(Device::cuda())->device(), Device::cuda());
}

TEST(Memory, HostIsExhausted) {
  const Stream stream = Stream::create(Device::cpu());
  EXPECT_ERROR(
      host_memory()->allocate(std::size_t{1} << 60, stream), resource,
      "the host has no 1152921504606846976 bytes of memory left; use smaller or fewer arrays.");
}

TEST(Memory, IsFreedBehindTheWorkThatUsesIt) {
  const Stream stream = Stream::create(Device::cpu());
  std::promise<void> gate;
  stream.enqueue([&] { gate.get_future().wait(); });
  {
    const Array x = Array::empty({100'000}, Dtype::u8, host_memory(), stream);
    fill_bytes(x.view(), 1, stream);  // an address sanitizer sees when it comes too late
  }
  gate.set_value();
  stream.synchronize();
}

TEST(Memory, HostBlock) {
  EXPECT_EQ(host_block(0), nullptr);
  const std::shared_ptr<void> block = host_block(100);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block.get()) % 256, 0u);
  std::memset(block.get(), 1, 100);
}

TEST(CountingMemory, CountsAndLimits) {
  const Stream stream = Stream::create(Device::cpu());
  const auto memory = std::make_shared<CountingMemory>(host_memory(), 100);
  EXPECT_EQ(memory->device(), Device::cpu());
  void* const a = memory->allocate(60, stream);
  void* const b = memory->allocate(40, stream);
  EXPECT_EQ(memory->current_bytes(), 100u);
  EXPECT_ERROR(memory->allocate(1, stream), resource,
               "1 bytes of cpu memory were asked for, but 100 of the limit of 100 are in use; "
               "raise the limit, or hold "
               "fewer arrays.");
  memory->deallocate(a, 60, stream);
  EXPECT_EQ(memory->current_bytes(), 40u);
  memory->deallocate(memory->allocate(50, stream), 50, stream);
  memory->deallocate(b, 40, stream);
  EXPECT_EQ(memory->current_bytes(), 0u);
  EXPECT_EQ(memory->peak_bytes(), 100u);
  EXPECT_EQ(memory->allocations(), 3u);
}

TEST(CountingMemory, AFailureOfTheOtherResourceDoesNotCount) {
  const Stream stream = Stream::create(Device::cpu());
  CountingMemory memory(std::make_shared<Recorder>());
  EXPECT_ERROR(memory.allocate(1001, stream), resource, "the recorder is full");
  EXPECT_EQ(memory.current_bytes(), 0u);
  EXPECT_EQ(memory.allocations(), 0u);
}

TEST(CountingMemory, FromManyThreads) {
  const auto memory = std::make_shared<CountingMemory>(host_memory());
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        const Stream stream = Stream::create(Device::cpu(), 1);
        for (int round = 0; round < 100; ++round)
          Array::empty({10}, Dtype::u8, memory, stream);
      });
    }
  }
  EXPECT_EQ(memory->current_bytes(), 0u);
  EXPECT_EQ(memory->allocations(), 400u);
  EXPECT_LE(memory->peak_bytes(), 40u);
}

TEST(ArrayMemory, GoesBackToItsResourceOnItsStream) {
  const Stream stream = Stream::create(Device::cpu());
  const auto recorder = std::make_shared<Recorder>();
  {
    const Array x = Array::empty({4}, Dtype::f32, recorder, stream);
    const Array half = x.slice(0, 0, 2);
    EXPECT_EQ(recorder->live, 1);
  }
  EXPECT_EQ(recorder->live, 0);
  ASSERT_EQ(recorder->streams.size(), 2u);
  EXPECT_TRUE(recorder->streams[0] == stream && recorder->streams[1] == stream);
}

TEST(ArrayMemory, AnArrayKeepsItsResourceAndStream) {
  auto recorder = std::make_shared<Recorder>();
  const std::weak_ptr<Recorder> watch = recorder;
  Array x = Array::empty({4}, Dtype::f32, std::exchange(recorder, nullptr),
                         Stream::create(Device::cpu()));
  EXPECT_FALSE(watch.expired());
  x = Array();
  EXPECT_TRUE(watch.expired());
}

TEST(ArrayMemory, NothingIsTakenForNoElements) {
  const auto memory = std::make_shared<CountingMemory>(host_memory());
  const Array x = Array::empty({3, 0}, Dtype::f32, memory, Stream::create(Device::cpu()));
  EXPECT_EQ(x.data(), nullptr);
  EXPECT_EQ(memory->allocations(), 0u);
}

}  // namespace
}  // namespace forebay
