// What the tests of every kind of stream and memory (array/*_test.cpp) leave out: kernels on the
// device, and what is particular to CUDA.

#include <chrono>
#include <cstring>
#include <numeric>
#include <thread>

#include <cuda_runtime_api.h>

#include <forebay/array/cuda/backend.h>
#include <forebay/array/cuda/device.h>
#include <forebay/array/cuda/graph.h>
#include <forebay/array/cuda/kernel.h>
#include <forebay/array/memory.h>

#include "kit/kit.h"

namespace forebay::cuda {
namespace {

using namespace std::chrono_literals;

const KernelSource kAdd{"add",
                        R"(extern "C" __global__ void add(i32* x, i32 value, i64 n) {
  for (i64 i = grid_thread(); i < n; i += grid_threads()) x[i] += value;
}
)",
                        {}};

/// Occupies the device for some milliseconds.
const KernelSource kSpin{"spin",
                         R"(extern "C" __global__ void spin(i64 cycles) {
  const i64 end = clock64() + cycles;
  while (clock64() < end) {}
}
)",
                         {}};

class CudaRuntime : public testing::Test {
 protected:
  void SetUp() override { SKIP_WITHOUT(Device::cuda()); }

  static void add(const Array& x, std::int32_t value, const Stream& stream) {
    void* const data = x.data();
    const std::int64_t n = x.count();
    load_kernel(kAdd, x.device())->launch(stream, {4}, {128}, 0, {&data, &value, &n});
  }
  static void spin(const Stream& stream) {
    const std::int64_t cycles = 20'000'000;
    load_kernel(kSpin, stream.device())->launch(stream, {1}, {1}, 0, {&cycles});
  }
  static std::vector<std::int32_t> values(const Array& x, const Context& context) {
    const Array host = kit::to_host(x, context);
    return {host.as<std::int32_t>(), host.as<std::int32_t>() + host.count()};
  }
};

TEST_F(CudaRuntime, LaunchesAKernel) {
  const Context context = kit::context(Device::cuda());
  std::vector<std::int32_t> want(10'000);
  std::iota(want.begin(), want.end(), 0);
  const Array x = kit::to_device(Array::from({10'000}, want), context);
  add(x, 7, context.stream);
  for (auto& value : want)
    value += 7;
  EXPECT_EQ(values(x, context), want);
}

TEST_F(CudaRuntime, AKernelThatStartsEarlySeesWhatTheOneBeforeWrites) {
  const KernelSource late{"late_add",
                          R"(extern "C" __global__ void late_add(i32* x, i64 n, i64 cycles) {
  let_next_kernel_start();
  const i64 end = clock64() + cycles;
  while (clock64() < end) {}
  for (i64 i = grid_thread(); i < n; i += grid_threads()) ++x[i];
}
)",
                          {}};
  const KernelSource early{"early_copy",
                           R"(extern "C" __global__ void early_copy(i32* x, i32* to, i64 n) {
  wait_for_kernel_before();
  for (i64 i = grid_thread(); i < n; i += grid_threads()) to[i] = x[i];
}
)",
                           {}};
  const Context context = kit::context(Device::cuda());
  const Array x = Array::zeros({1000}, Dtype::i32, context),
              to = Array::zeros({1000}, Dtype::i32, context);
  void *const from = x.data(), *const into = to.data();
  const std::int64_t n = x.count(), cycles = 2'000'000;
  const auto both = [&] {
    load_kernel(late, x.device())->launch(context.stream, {8}, {128}, 0, {&from, &n, &cycles});
    load_kernel(early, x.device())->launch_early(context.stream, {8}, {128}, 0, {&from, &into, &n});
  };
  both();
  both();
  EXPECT_EQ(values(to, context), std::vector<std::int32_t>(1000, 2));
  const auto graph = Graph::capture(context.stream, both);
  graph->launch(context.stream);
  graph->launch(context.stream);
  EXPECT_EQ(values(to, context), std::vector<std::int32_t>(1000, 4));
}

TEST_F(CudaRuntime, LoadsAKernelOnceForAllThreads) {
  std::vector<std::shared_ptr<const Kernel>> kernels(8);
  {
    std::vector<std::jthread> threads;
    for (auto& kernel : kernels)
      threads.emplace_back([&] { kernel = load_kernel(kAdd, Device::cuda()); });
  }
  for (const auto& kernel : kernels)
    EXPECT_EQ(kernel, kernels[0]);
}

TEST_F(CudaRuntime, AnEmptyGridLaunchesNothing) {
  const Stream stream = Stream::create(Device::cuda());
  const std::int64_t cycles = 1;
  for (const Dim3 grid : {Dim3{0, 1, 1}, Dim3{1, 0, 1}, Dim3{1, 1, 0}}) {
    load_kernel(kSpin, Device::cuda())->launch(stream, grid, {1}, 0, {&cycles});
  }
  stream.synchronize();
}

TEST_F(CudaRuntime, ABadLaunchNamesTheKernelAndItsShape) {
  const Stream stream = Stream::create(Device::cuda());
  const std::int64_t cycles = 1;
  const auto error = kit::caught([&] {
    load_kernel(kSpin, Device::cuda())->launch(stream, {2, 3, 1}, {4096}, 16, {&cycles});
  });
  EXPECT_EQ(error.kind, ErrorKind::device);
  EXPECT_TRUE(
      error.text.starts_with("CUDA failed at `spin<<<(2, 3, 1), (4096, 1, 1), 16>>>`: invalid "))
      << error.text;
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);  // nobody else finds it again
  const Stream cpu = Stream::create(Device::cpu(), 1);
  EXPECT_ERROR(
      load_kernel(kSpin, Device::cuda())->launch(cpu, {1}, {1}, 0, {&cycles}), invalid,
      "kernel `spin` is loaded on cuda:0, but the stream is on cpu; load it for that device.");
}

TEST_F(CudaRuntime, AllOfTheSharedMemoryCanBeUsed) {
  const DeviceLimits& device = limits(Device::cuda());
  EXPECT_GE(device.architecture, 80);
  EXPECT_GT(device.multiprocessors, 0);
  EXPECT_GT(device.shared_memory_per_block, std::size_t{48 << 10});
  EXPECT_GT(device.l2_bytes, 0U);
  const KernelSource reverse{"reverse",
                             R"(extern "C" __global__ void reverse(i32* x, i32 n) {
  extern __shared__ i32 copy[];
  __shared__ i32 last;  // static shared memory counts too
  if (threadIdx.x == 0) last = n - 1;
  for (i32 i = threadIdx.x; i < n; i += blockDim.x) copy[i] = x[i];
  __syncthreads();
  for (i32 i = threadIdx.x; i < n; i += blockDim.x) x[i] = copy[last - i];
}
)",
                             {}};
  const Context context = kit::context(Device::cuda());
  const std::size_t bytes = device.shared_memory_per_block - 1024;
  const auto n = static_cast<std::int32_t>(bytes / sizeof(std::int32_t));
  std::vector<std::int32_t> want(static_cast<std::size_t>(n));
  std::iota(want.begin(), want.end(), 0);
  const Array x = kit::to_device(Array::from({n}, want), context);
  void* const data = x.data();
  const auto kernel = load_kernel(reverse, Device::cuda());
  kernel->launch(context.stream, {1}, {256}, bytes, {&data, &n});
  std::reverse(want.begin(), want.end());
  EXPECT_EQ(values(x, context), want);
  EXPECT_EQ(kernel->resident_blocks(256, bytes), device.multiprocessors);
  EXPECT_GE(kernel->resident_blocks(256, 0), 4 * device.multiprocessors);
}

TEST_F(CudaRuntime, FreedMemoryIsReusedInTheStreamsOrder) {
  // Each array is dropped while the work on it is still to come; the next one may take its memory
  // only behind that.
  const Context context = kit::context(Device::cuda());
  std::vector<Array> copies;
  spin(context.stream);
  for (int i = 0; i < 20; ++i) {
    const Array x = Array::zeros({100'000}, Dtype::i32, context);
    add(x, i, context.stream);
    copies.push_back(copy_to(x, context));
  }
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(values(copies[static_cast<std::size_t>(i)], context),
              std::vector<std::int32_t>(100'000, i));
  }
}

TEST_F(CudaRuntime, ThePoolKeepsWhatWasFreed) {
  const Context context = kit::context(Device::cuda());
  constexpr std::int64_t kBytes = 256 << 20;
  { const Array x = Array::empty({kBytes}, Dtype::u8, context); }
  context.stream.synchronize();
  std::size_t before = 0, after = 0, total = 0;
  ASSERT_EQ(cudaMemGetInfo(&before, &total), cudaSuccess);
  const Array y = Array::empty({kBytes}, Dtype::u8, context);
  context.stream.synchronize();
  ASSERT_EQ(cudaMemGetInfo(&after, &total), cudaSuccess);
  EXPECT_EQ(after, before);
}

TEST_F(CudaRuntime, ExhaustedMemoryIsAResourceErrorAndNoMore) {
  const Context context = kit::context(Device::cuda());
  const auto error =
      kit::caught([&] { context.memory->allocate(std::size_t{1} << 44, context.stream); });
  EXPECT_EQ(error.kind, ErrorKind::resource);
  EXPECT_TRUE(error.text.starts_with("cuda:0 has no 17592186044416 bytes of memory left: "))
      << error.text;
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  const auto pinned = kit::caught(
      [&] { forebay::pinned_memory()->allocate(std::size_t{1} << 50, context.stream); });
  EXPECT_EQ(pinned.kind, ErrorKind::resource);
  EXPECT_EQ(pinned.text,
            "1125899906842624 bytes of host memory cannot be page-locked: the system has no more; "
            "use smaller batches "
            "or fewer slots.");
  EXPECT_EQ(values(Array::zeros({3}, Dtype::i32, context), context),
            std::vector<std::int32_t>(3, 0));
}

TEST_F(CudaRuntime, APoolRefusesAStreamOfAnotherDevice) {
  const Stream cpu = Stream::create(Device::cpu(), 1);
  EXPECT_ERROR(
      forebay::device_memory(Device::cuda())->allocate(8, cpu), invalid,
      "memory of cuda:0 is given in the order of a stream on cuda:0; this stream is on cpu.");
}

TEST_F(CudaRuntime, PinnedMemoryStaysUntilItsCopiesAreDone) {
  const Context context = kit::context(Device::cuda());
  const auto pinned = forebay::pinned_memory();
  constexpr std::size_t kBytes = 64 << 20;
  void* const host = pinned->allocate(kBytes, context.stream);
  cudaPointerAttributes attributes{};
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, host), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeHost);
  std::memset(host, 3, kBytes);
  const Array x = Array::empty({kBytes}, Dtype::u8, context);
  spin(context.stream);
  copy({host, Dtype::u8, Device::cpu(), {kBytes}, {1}}, x.view(), context.stream);
  pinned->deallocate(host, kBytes, context.stream);
  const Array got = kit::to_host(x, context);
  for (std::size_t i = 0; i < kBytes; ++i)
    ASSERT_EQ(got.as<unsigned char>()[i], 3) << i;
}

TEST_F(CudaRuntime, PageableMemoryIsReadInTheStreamsOrder) {
  const Context context = kit::context(Device::cuda());
  std::vector<std::int32_t> host(1000, 1);
  const Array x = Array::empty({1000}, Dtype::i32, context);
  context.stream.enqueue([&] {
    std::this_thread::sleep_for(30ms);
    std::fill(host.begin(), host.end(), 2);
  });
  copy({host.data(), Dtype::i32, Device::cpu(), {1000}, {1}}, x.view(), context.stream);
  EXPECT_EQ(values(x, context), std::vector<std::int32_t>(1000, 2));
}

TEST_F(CudaRuntime, AStreamWaitsForAnotherOnTheDevice) {
  const Context first = kit::context(Device::cuda()), second = kit::context(Device::cuda());
  const Array x = Array::zeros({1000}, Dtype::i32, first);
  for (int round = 0; round < 20; ++round) {
    spin(first.stream);
    add(x, 1, first.stream);
    second.stream.wait(first.stream.record());
    const Array y = copy_to(x, second);
    first.stream.wait(second.stream.record());
    add(x, 1, first.stream);
    EXPECT_EQ(values(y, second), std::vector<std::int32_t>(1000, 2 * round + 1));
  }
}

TEST_F(CudaRuntime, AStreamFailedByAHostTaskSkipsLaterOnes) {
  const Stream stream = Stream::create(Device::cuda());
  bool ran = false;
  stream.enqueue([] { throw Error(ErrorKind::io, "the file is gone"); });
  stream.enqueue([&] { ran = true; });
  EXPECT_ERROR(stream.synchronize(), io, "the file is gone");
  EXPECT_ERROR(stream.synchronize(), io, "the file is gone");
  EXPECT_FALSE(ran);
}

TEST_F(CudaRuntime, HandlesOfBorrowedStreamsDoNotWait) {
  cudaStream_t native = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&native, cudaStreamNonBlocking), cudaSuccess);
  auto owner = std::make_shared<int>();
  const std::weak_ptr<int> watch = owner;
  {
    const Stream borrowed = Stream::borrow_cuda(native, 0);
    for (int i = 0; i < 10; ++i)
      spin(borrowed);
    borrowed.keep(std::exchange(owner, nullptr));
  }
  EXPECT_EQ(cudaStreamQuery(native), cudaErrorNotReady);
  cudaGetLastError();
  EXPECT_FALSE(watch.expired());
  Stream::borrow_cuda(native, 0).synchronize();
  EXPECT_TRUE(watch.expired());
  cudaStreamDestroy(native);
}

TEST_F(CudaRuntime, AnOwnerMayHoldTheStreamThatItIsKeptFor) {
  std::weak_ptr<Stream> watch;
  {
    const auto stream = std::make_shared<Stream>(Stream::create(Device::cuda()));
    watch = stream;
    spin(*stream);
    stream->keep(stream);
  }
  const Stream another = Stream::create(Device::cuda());
  for (int i = 0; i < 100 && !watch.expired(); ++i) {
    std::this_thread::sleep_for(10ms);
    another.synchronize();
  }
  EXPECT_TRUE(watch.expired());
}

TEST_F(CudaRuntime, AThreadsDeviceIsAsItWas) {
  const int last = cuda_device_count() - 1;
  std::jthread([&] {
    {
      const Stream stream = Stream::create(Device::cuda(last));
      Array::empty({10}, Dtype::i32, forebay::device_memory(Device::cuda(last)), stream);
      spin(stream);
      stream.synchronize();
    }
    int current = -1;
    EXPECT_EQ(cudaGetDevice(&current), cudaSuccess);
    EXPECT_EQ(current, 0);
  });
}

TEST_F(CudaRuntime, ATaskMayDropMemoryAndStreams) {
  // What a host task holds is destroyed where CUDA may be called, also when the task has been the
  // last owner.
  const Stream stream = Stream::create(Device::cuda());
  {
    const Context context = kit::context(Device::cuda());
    const Array x = Array::zeros({1000}, Dtype::i32, context);
    stream.wait(context.stream.record());
    stream.enqueue([x, context] { std::this_thread::sleep_for(1ms); });
  }
  stream.synchronize();
}

TEST(DeviceCount, HasAReasonExactlyWhenThereIsNoDevice) {
  EXPECT_EQ(std::strlen(absence_reason()) > 0, device_count() == 0);
}

}  // namespace
}  // namespace forebay::cuda
