#include <forebay/array/cuda/graph.h>

#include <atomic>
#include <optional>
#include <thread>

#include <cuda_runtime_api.h>

#include <forebay/array/cuda/kernel.h>

#include "kit/kit.h"

namespace forebay::cuda {
namespace {

class CudaGraph : public testing::Test {
 protected:
  void SetUp() override {
    SKIP_WITHOUT(Device::cuda());
    context_.emplace(kit::context(Device::cuda()));
    x_ = Array::zeros({1000}, Dtype::i32, *context_);
    stream().synchronize();
  }

  const Stream& stream() const { return context_->stream; }
  void increment() const { increment_on(stream()); }
  void increment_on(const Stream& stream) const {
    static const KernelSource source{"increment",
                                     "extern \"C\" __global__ void increment(i32* x, i64 n) {\n"
                                     "  const i64 i = grid_thread();\n  if (i < n) ++x[i];\n}\n",
                                     {}};
    void* const data = x_.data();
    const std::int64_t n = x_.count();
    load_kernel(source, Device::cuda())->launch(stream, {8}, {128}, 0, {&data, &n});
  }
  /// What all elements of `x_` are; -1 when they differ.
  int value() const {
    const Array host = kit::to_host(x_, *context_);
    const std::int32_t* values = host.as<std::int32_t>();
    return std::equal(values + 1, values + 1000, values) ? values[0] : -1;
  }

  std::optional<Context> context_;
  Array x_;
};

TEST_F(CudaGraph, CapturesWithoutRunningAndReplays) {
  increment();  // loads the kernel
  const auto graph = Graph::capture(stream(), [&] {
    increment();
    increment();
  });
  EXPECT_EQ(value(), 1);
  for (int i = 0; i < 3; ++i)
    graph->launch(stream());
  EXPECT_EQ(value(), 7);
  graph->launch(Stream::create(Device::cuda()));
  increment();
  stream().synchronize();
  cudaDeviceSynchronize();
  EXPECT_EQ(value(), 10);
}

TEST_F(CudaGraph, LoadsKernelsDuringACapture) {
  const KernelSource fresh{
      "fresh", "extern \"C\" __global__ void fresh(i32* x) { x[threadIdx.x] += 5; }", {}};
  void* const data = x_.data();
  const auto graph = Graph::capture(stream(), [&] {
    load_kernel(fresh, Device::cuda())->launch(stream(), {1}, {1000}, 0, {&data});
  });
  graph->launch(stream());
  EXPECT_EQ(value(), 5);
}

TEST_F(CudaGraph, TakesInOtherStreamsThroughEvents) {
  increment();
  const Stream side = Stream::create(Device::cuda());
  const auto graph = Graph::capture(stream(), [&] {
    side.wait(stream().record());
    increment_on(side);
    stream().wait(side.record());
    increment();
  });
  graph->launch(stream());
  EXPECT_EQ(value(), 3);
}

TEST_F(CudaGraph, ReplaysHostTasksAndHoldsWhatWasKept) {
  std::atomic<int> runs = 0;
  auto owner = std::make_shared<int>();
  const std::weak_ptr<int> watch = owner;
  auto graph = Graph::capture(stream(), [&] {
    stream().enqueue([&] { ++runs; });
    stream().keep(std::exchange(owner, nullptr));
  });
  stream().synchronize();
  EXPECT_EQ(runs, 0);
  for (int i = 0; i < 3; ++i)
    graph->launch(stream());
  stream().synchronize();
  EXPECT_EQ(runs, 3);
  EXPECT_FALSE(watch.expired());
  graph->launch(stream());
  graph.reset();  // waits for the replay
  EXPECT_EQ(runs, 4);
  EXPECT_TRUE(watch.expired());
}

TEST_F(CudaGraph, AnExceptionAbandonsTheCapture) {
  EXPECT_ERROR(Graph::capture(stream(),
                              [&] {
                                increment();
                                throw Error(ErrorKind::unsupported, "not this one");
                              }),
               unsupported, "not this one");
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  increment();
  EXPECT_EQ(value(), 1);
}

TEST_F(CudaGraph, WhatCannotBeCapturedIsAnError) {
  const auto error = kit::caught([&] {
    Graph::capture(stream(), [&] {
      increment();
      stream().synchronize();
    });
  });
  EXPECT_EQ(error.kind, ErrorKind::device);
  EXPECT_EQ(
      error.text,
      "CUDA failed at `cudaStreamSynchronize`: operation not permitted when stream is capturing "
      "(cudaErrorStreamCaptureUnsupported).");
  const Stream side = Stream::create(Device::cuda());
  const auto unjoined = kit::caught([&] {
    Graph::capture(stream(), [&] {
      side.wait(stream().record());
      increment_on(side);
    });
  });
  EXPECT_TRUE(unjoined.text.starts_with("CUDA failed at `cudaStreamEndCapture`: "))
      << unjoined.text;
  const auto nested = kit::caught(
      [&] { Graph::capture(stream(), [&] { Graph::capture(stream(), [&] { increment(); }); }); });
  EXPECT_TRUE(nested.text.starts_with("CUDA failed at `cudaStreamBeginCapture`: ")) << nested.text;
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
  increment();  // both streams are as good as before
  side.wait(stream().record());
  increment_on(side);
  side.synchronize();
  EXPECT_EQ(value(), 2);
}

TEST_F(CudaGraph, RefusesStreamsOfTheCpu) {
  const Stream cpu = Stream::create(Device::cpu(), 1);
  EXPECT_ERROR(Graph::capture(cpu, [] {}), invalid,
               "a graph is captured from a CUDA stream; this one is on cpu.");
  const auto graph = Graph::capture(stream(), [&] { increment(); });
  EXPECT_ERROR(graph->launch(cpu), invalid,
               "a graph of cuda:0 cannot be launched on a stream of cpu.");
}

TEST_F(CudaGraph, ARelaxedThreadMayWorkWhileAnotherCapturesGlobally) {
  cudaStream_t trainer = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&trainer, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(trainer, cudaStreamCaptureModeGlobal), cudaSuccess);
  std::jthread([&] {
    relax_capture_mode_of_this_thread();
    const Stream own = Stream::create(Device::cuda());
    forebay::pinned_memory()->deallocate(forebay::pinned_memory()->allocate(100, own), 100, own);
    increment_on(own);
    own.synchronize();
  }).join();
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(trainer, &graph), cudaSuccess);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(trainer);
  EXPECT_EQ(value(), 1);
}

TEST_F(CudaGraph, TimingEventsMeasure) {
  const KernelSource source{"wait",
                            R"(extern "C" __global__ void wait(i64 ns) {
  i64 begin, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
  do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  while (now - begin < ns);
}
)",
                            {}};
  Event begin = create_timing_event(Device::cuda()), end = create_timing_event(Device::cuda());
  const std::int64_t ns = 20'000'000;
  const auto kernel = load_kernel(source, Device::cuda());
  stream().record(begin);
  kernel->launch(stream(), {1}, {1}, 0, {&ns});
  stream().record(end);
  end.synchronize();
  EXPECT_GE(elapsed_ms(begin, end), 19);
  EXPECT_LT(elapsed_ms(begin, end), 1000);
}

}  // namespace
}  // namespace forebay::cuda
