// Copies, stages and training run beside each other: shown by holding one of them back on the
// device and seeing the others get on. No clock decides.
#include "kit/kit.h"

#include <forebay/pipeline/fixture_test.h>

namespace forebay {
namespace {

using namespace test;

/// Holds CUDA streams back until it is opened, without a host function that blocks.
class Barrier {
 public:
  Barrier() {
    cpu_.enqueue([this] { gate_.wait(); });
    opened_ = cpu_.record();
  }
  ~Barrier() { open(); }
  void open() { gate_.open(); }
  void hold_back(const Stream& stream) const { stream.wait(opened_); }

 private:
  Gate gate_;
  const Stream cpu_ = Stream::create(Device::cpu(), 1);
  Event opened_;
};

TEST(OverlapCuda, CopiesAndStagesRunBesideTraining) {
  SKIP_WITHOUT(Device::cuda());
  const Watchdog watchdog;
  Spec spec = counting_spec(Device::cuda());
  spec.stages.push_back(stage("clip", Clip{.min = 0}));
  Pipeline pipeline = Pipeline::from_spec(spec);
  Barrier barrier;
  const Stream training = Stream::create(Device::cuda()), observer = Stream::create(Device::cuda());
  std::atomic<bool> trained{false};
  auto first = pipeline.next(training);
  barrier.hold_back(training);  // the step on `first` takes as long as the test likes
  training.enqueue([&] { trained = true; });
  for (int i = 0; i < 3; ++i) {
    auto batch = pipeline.next(observer);
    observer.synchronize();  // read, copied and through its stages
    EXPECT_TRUE(is_intact(*batch));
    EXPECT_FALSE(trained);
  }
  barrier.open();
  training.synchronize();
  EXPECT_TRUE(trained);
  EXPECT_TRUE(is_intact(*first));
}

/// Remembers what was allocated through it.
class SpyMemory final : public MemoryResource {
 public:
  Device device() const override { return memory_->device(); }
  void* allocate(std::size_t bytes, const Stream& stream) override {
    void* const data = memory_->allocate(bytes, stream);
    const std::lock_guard lock(mutex_);
    blocks_.emplace_back(data, bytes);
    return data;
  }
  void deallocate(void* data, std::size_t bytes, const Stream& stream) noexcept override {
    memory_->deallocate(data, bytes, stream);
  }
  /// Whether the bytes of `wanted` stand in any block now.
  bool holds(const std::vector<float>& wanted, const Context& context) const {
    const std::lock_guard lock(mutex_);
    const std::string needle(reinterpret_cast<const char*>(wanted.data()),
                             wanted.size() * sizeof(float));
    for (const auto& [data, bytes] : blocks_) {
      const auto count = static_cast<std::int64_t>(bytes);
      const ArrayView view{data, Dtype::u8, device(), {count}, {1}};
      const Array host = kit::to_host(Array(view, nullptr), context);
      if (std::string(host.as<char>(), bytes).find(needle) != std::string::npos) return true;
    }
    return false;
  }

 private:
  const MemoryPtr memory_ = device_memory(Device::cuda());
  mutable std::mutex mutex_;
  std::vector<std::pair<void*, std::size_t>> blocks_;
};

struct Held {
  std::function<void(const Launch&)> call;
};

/// Copies its input after calling the hook, which may hold the compute stream back.
class HeldBody final : public Body {
 public:
  explicit HeldBody(Held held) : held_(std::move(held)) {}
  void run(std::span<const ArrayView> inputs, std::span<const ArrayView> outputs,
           const Launch& launch) override {
    held_.call(launch);
    copy(inputs[0], outputs[0], launch.stream);
  }

 private:
  Held held_;
};

TEST(OverlapCuda, TheNextBatchIsCopiedBesideStages) {
  SKIP_WITHOUT(Device::cuda());
  const Watchdog watchdog;
  static const OpEntry held_op{
      hook_def({.name = "held",
                .infer = [](const void*,
                            std::span<const ArraySpec> inputs) { return std::vector{inputs[0]}; }}),
      nullptr, [](const Op& op, const Problem&, const Context&) -> std::unique_ptr<Body> {
        return std::make_unique<HeldBody>(op.settings<Held>());
      }};
  Barrier barrier;
  Spec spec = counting_spec(Device::cuda());
  spec.stages.push_back({.op = Op::with(held_op, Held{[&](const Launch& launch) {
                                          if (launch.batch->epoch == 0 && launch.batch->batch == 0)
                                            barrier.hold_back(launch.stream);
                                        }}),
                         .inputs = {"x"},
                         .outputs = {},
                         .device = {},
                         .position = {}});
  const auto memory = std::make_shared<SpyMemory>();
  Pipeline pipeline = Pipeline::from_spec(spec, {.memory = memory, .cuda_graphs = false});
  const Stream training = Stream::create(Device::cuda());
  std::atomic<bool> ready{false};
  auto first = pipeline.next(training);
  training.enqueue([&] { ready = true; });  // behind the stages of the first batch
  const std::int64_t rows = spec.batch_size;
  std::vector<float> second;
  for (std::int64_t i = rows; i < 2 * rows; ++i) {
    for (std::int64_t j = 0; j < 3; ++j)
      second.push_back(CountingSource::value(i, j));
  }
  const Context observer = kit::context(Device::cuda());
  while (!memory->holds(second, observer))
    std::this_thread::sleep_for(1ms);  // the watchdog ends it if it never does
  EXPECT_FALSE(ready);
  barrier.open();
  training.synchronize();
  EXPECT_TRUE(is_intact(*first));
}

}  // namespace
}  // namespace forebay
