#include "kit/kit.h"

#include <atomic>
#include <cstring>
#include <thread>

#include <forebay/ops/clip/clip.h>
#include <forebay/ops/eager.h>
#include <forebay/ops/permute/permute.h>

namespace forebay {
namespace {

class EagerTest : public kit::DeviceTest {};

DEVICE_TEST(EagerTest, KeepsDenseArraysAndCopiesOthers) {
  const Context context = kit::context(device());
  const Array x = kit::random({7, 9}, Dtype::f32, 1);
  for (kit::Layout layout : kit::layouts()) {
    const Array device = kit::to_device(kit::with_layout(x, layout), context);
    const Array dense = contiguous(device, context);
    EXPECT_EQ(dense.data() == device.data(), is_dense(device.view()));
    EXPECT_TRUE(is_dense(dense.view()));
    EXPECT_TRUE(kit::same_bits(kit::to_host(dense, context), x));
  }
}

DEVICE_TEST(EagerTest, KeepsTheOrderOfTheStreamAndItsInputsAlive) {
  const Context context = kit::context(device());
  Array x = kit::to_device(kit::generate({1 << 20}, Dtype::f32,
                                         [](std::int64_t i) { return static_cast<double>(i % 7); }),
                           context);
  for (int i = 0; i < 20; ++i)
    x = clip(x, {.min = 1 + i % 2, .max = 5}, context);  // each input is dropped at once
  const Array got = kit::to_host(x, context);
  for (std::int64_t i = 0; i < got.count(); i += 1001)
    EXPECT_EQ(kit::value(got.view(), i), std::clamp<std::int64_t>(i % 7, 2, 5));
}

DEVICE_TEST(EagerTest, TakesItsMemoryFromTheContext) {
  Context context = kit::context(device());
  const Array x = kit::to_device(kit::random({1000}, Dtype::f32, 1), context);
  const auto counter = std::make_shared<CountingMemory>(context.memory);
  context.memory = counter;
  const Array y = clip(x, {.min = 0}, context);
  EXPECT_EQ(counter->allocations(), 1U);
  EXPECT_EQ(counter->current_bytes(), 4000U);
  context.stream.synchronize();
}

// ---- A kernel op of the test's own: doubles bytes, through scratch, and notices strided inputs.

struct Doubling {
  void fields(FieldVisitor&) {}
};
std::atomic<int> living{0};

class DoublingBody final : public Body {
 public:
  DoublingBody() { ++living; }
  ~DoublingBody() override { --living; }
  std::size_t scratch_bytes() const override { return 1000; }
  void run(std::span<const ArrayView> inputs, std::span<const ArrayView> outputs,
           const Launch& launch) override {
    std::this_thread::sleep_for(
        std::chrono::milliseconds(20));  // longer than the call that enqueued it
    if (living != 1 || !is_dense(inputs[0]))
      throw std::logic_error("the body or its input is not what it must be");
    std::memcpy(launch.scratch, inputs[0].data, inputs[0].bytes());
    for (std::int64_t i = 0; i < outputs[0].count(); ++i) {
      outputs[0].as<std::uint8_t>()[i] =
          static_cast<std::uint8_t>(2 * static_cast<const std::uint8_t*>(launch.scratch)[i]);
    }
  }
};
std::vector<ArraySpec> infer(const Doubling&, std::span<const ArraySpec> inputs) {
  return {inputs[0]};
}
std::unique_ptr<Body> doubling(const Op&, const Problem& problem, const Context&) {
  EXPECT_EQ(problem.inputs, problem.outputs);
  return std::make_unique<DoublingBody>();
}
const OpEntry kDoubling{define_op<Doubling, infer>({.name = "doubling"}), doubling, nullptr};

TEST(EagerKernelOp, GetsDenseInputsScratchAndALongEnoughLife) {
  const Context context = kit::context(Device::cpu());
  const Array x = kit::random({5, 6}, Dtype::u8, 1, 0, 100);
  for (kit::Layout layout : kit::layouts()) {
    const Array y =
        run_op(Op::with(kDoubling, Doubling{}), {kit::with_layout(x, layout)}, context).front();
    std::vector<double> want = kit::values(x);
    for (double& value : want)
      value *= 2;
    EXPECT_TRUE(kit::near(kit::to_host(y, context), want, 0));
    EXPECT_EQ(living, 0);
  }
}

TEST(EagerKernelOp, IsNotCalledForNothing) {
  const Context context = kit::context(Device::cpu());
  const Array none = kit::random({0, 6}, Dtype::u8, 1);
  EXPECT_EQ(run_op(Op::with(kDoubling, Doubling{}), {none}, context).front().shape(), (Dims{0, 6}));
  context.stream.synchronize();
}

TEST(EagerErrors, NameTheDevice) {
  const Context context = kit::context(Device::cpu());
  const Array x = kit::random({3}, Dtype::u8, 1);
  ArrayView elsewhere = x.view();
  elsewhere.device = Device::cuda(1);
  EXPECT_ERROR(clip(x.with_view(elsewhere), {.min = 0}, context), invalid,
               "clip: input 0 is on cuda:1 but the stream on cpu; copy it with `copy_to` before.");
  OpEntry entry = kDoubling;
  entry.cpu = nullptr;
  EXPECT_ERROR(run_op(Op::with(entry, Doubling{}), {x}, context), unsupported,
               "doubling: this build has no body for cpu.");
}

}  // namespace
}  // namespace forebay
