#include <forebay/array/array.h>

#include <algorithm>
#include <future>

#include <forebay/array/require.h>

#include "kit/kit.h"

namespace forebay {
namespace {

Array numbers(const Dims& shape, Dtype dtype = Dtype::f32) {
  return kit::generate(shape, dtype, [](std::int64_t i) { return static_cast<double>(i % 100); });
}

std::vector<double> filled(std::size_t count, double value) {
  return std::vector<double>(count, value);
}

TEST(Array, IsEmptyByDefault) {
  const Array x;
  EXPECT_EQ(x.shape(), Dims(0));
  EXPECT_EQ(x.count(), 0);
  EXPECT_EQ(x.dtype(), Dtype::f32);
  EXPECT_EQ(x.device(), Device::cpu());
  EXPECT_EQ(x.data(), nullptr);
}

TEST(Array, FromValues) {
  const Array x = Array::from<std::int16_t>({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(x.dtype(), Dtype::i16);
  EXPECT_EQ(x.strides(), Dims(3, 1));
  EXPECT_EQ(x.bytes(), 12u);
  EXPECT_EQ(kit::values(x), std::vector<double>({1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(kit::values(Array::from<double>({}, {7.5})), std::vector<double>({7.5}));
  EXPECT_EQ(Array::from({0, 4}, std::vector<float>()).count(), 0);
  EXPECT_ERROR(Array::from<float>({2, 2}, {1, 2, 3}), invalid,
               "3 values were given for shape (2, 2), which has 4 elements.");
  EXPECT_ERROR(Array::from<float>({-1}, {1}), invalid,
               "shape (-1,) has a negative extent; extents are 0 or more.");
}

TEST(Array, ViewsShareTheMemory) {
  Array part;
  {
    const Array x = numbers({3, 4});
    part = x.permute({1, 0}).slice(0, 1, 3).reshape({2, 3, 1}).broadcast_to({2, 3, 2});
    EXPECT_EQ(part.owner(), x.owner());
  }
  EXPECT_EQ(kit::values(part), std::vector<double>({1, 1, 5, 5, 9, 9, 2, 2, 6, 6, 10, 10}));
}

class ArrayTest : public kit::DeviceTest {};

DEVICE_TEST(ArrayTest, Empty) {
  const Context context = kit::context(device());
  for (const Dtype dtype : kAllDtypes) {
    const Array x = Array::empty({2, 5}, dtype, context);
    EXPECT_EQ(x.dtype(), dtype);
    EXPECT_EQ(x.device(), device());
    EXPECT_TRUE(is_dense(x.view()));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(x.data()) % 256, 0u);
  }
  EXPECT_ERROR(Array::empty({-1}, Dtype::f32, context), invalid,
               "shape (-1,) has a negative extent; extents are 0 or more.");
}

DEVICE_TEST(ArrayTest, Zeros) {
  const Context context = kit::context(device());
  // The memory that comes back has been used.
  for (int round = 0; round < 3; ++round) {
    const Array x = Array::empty({1000}, Dtype::f32, context);
    fill_bytes(x.view(), 0xab, context.stream);
  }
  EXPECT_EQ(kit::values(kit::to_host(Array::zeros({1000}, Dtype::f32, context), context)),
            filled(1000, 0));
  EXPECT_EQ(kit::values(kit::to_host(Array::zeros({}, Dtype::c128, context), context)),
            filled(1, 0));
  EXPECT_EQ(Array::zeros({0, 3}, Dtype::u8, context).count(), 0);
}

DEVICE_TEST(ArrayTest, ZerosMayBeDroppedBeforeTheyAreWritten) {
  const Context context = kit::context(device());
  std::promise<void> gate;
  context.stream.enqueue([&] { gate.get_future().wait(); });
  Array::zeros({1000}, Dtype::f32, context);
  gate.set_value();
  context.stream.synchronize();
}

DEVICE_TEST(ArrayTest, FillBytes) {
  const Context context = kit::context(device());
  const Array x = Array::zeros({7}, Dtype::u8, context);
  fill_bytes(x.slice(0, 2, 5).view(), 9, context.stream);
  EXPECT_EQ(kit::values(kit::to_host(x, context)), std::vector<double>({0, 0, 9, 9, 9, 0, 0}));
  EXPECT_ERROR(fill_bytes(x.slice(0, 0, 7, 2).view(), 9, context.stream), invalid,
               "fill_bytes: the target has shape (4,) with strides (2,), which is not dense; fill "
               "a dense array.");
}

DEVICE_TEST(ArrayTest, CopyChecksItsArguments) {
  const Context context = kit::context(device());
  const Array x = numbers({2, 3}), y = numbers({3, 2}), z = numbers({2, 3}, Dtype::i8);
  EXPECT_ERROR(copy(x.view(), y.view(), context.stream), invalid,
               "copy: the source has shape (2, 3) and the target (3, 2).");
  EXPECT_ERROR(copy(x.view(), z.view(), context.stream), invalid,
               "copy: the source is f32 and the target i8; cast first.");
  EXPECT_ERROR(copy(y.permute({1, 0}).view(), x.view(), context.stream), invalid,
               "copy: the source has shape (2, 3) with strides (1, 2), which is not dense; make it "
               "contiguous first.");
  EXPECT_ERROR(copy(x.view(), y.permute({1, 0}).view(), context.stream), invalid,
               "copy: the target has shape (2, 3) with strides (1, 2), which is not dense; make it "
               "contiguous first.");
  EXPECT_ERROR(copy_to(y.permute({1, 0}), context), invalid,
               "copy: the source has shape (2, 3) with strides (1, 2), which is not dense; make it "
               "contiguous first.");
}

DEVICE_TEST(ArrayTest, CopyToKeepsTheSourceAlive) {
  const Context context = kit::context(device());
  std::promise<void> gate;
  const Array want = numbers({5000}, Dtype::i64);
  context.stream.enqueue([&, opened = gate.get_future().share()] { opened.wait(); });
  // Not from a block of this test: on CUDA, a copy from pageable memory waits for the stream.
  const Array result = [&] {
    const Context source = kit::context(device());
    Array memory = Array::empty({5000}, Dtype::i64, pinned_memory(), source.stream);
    std::copy_n(want.as<std::int64_t>(), 5000, memory.as<std::int64_t>());
    return copy_to(memory, context);
  }();
  gate.set_value();
  EXPECT_TRUE(kit::same_bits(kit::to_host(result, context), want));
}

/// Where the source and the target lie, and the kind of the stream.
struct Route {
  Device source, target, stream;
};
std::vector<Route> routes() {
  std::vector<Route> result;
  for (const Device source : kit::devices()) {
    for (const Device target : kit::devices()) {
      for (const Device stream : kit::devices())
        result.push_back({source, target, stream});
    }
  }
  return result;
}
class CopyTest : public testing::TestWithParam<Route> {
 protected:
  static std::string absence() {
    const Route route = GetParam();
    const bool cuda = route.source.is_cuda() || route.target.is_cuda() || route.stream.is_cuda();
    return kit::absence(cuda ? Device::cuda() : Device::cpu());
  }
};
std::string kind_of(Device device) { return device.is_cuda() ? "cuda" : "cpu"; }
INSTANTIATE_TEST_SUITE_P(Routes, CopyTest, testing::ValuesIn(routes()), [](const auto& test) {
  return kind_of(test.param.source) + "_to_" + kind_of(test.param.target) + "_on_" +
         kind_of(test.param.stream);
});

TEST_P(CopyTest, EveryByteArrives) {
  if (const std::string reason = absence(); !reason.empty()) GTEST_SKIP() << reason;
  const Route route = GetParam();
  const Context source_context = kit::context(route.source),
                target_context = kit::context(route.target);
  const Stream stream = Stream::create(route.stream);
  // The last is several times the grain of a parallel copy, with a rest.
  for (const Dims& shape :
       {Dims{}, Dims{1}, Dims{0}, Dims{3, 0, 2}, Dims{7, 11}, Dims{1'234'567}}) {
    const Array want = numbers(shape);
    const Array source = kit::to_device(want, source_context);
    const Array target = Array::zeros(shape, Dtype::f32, target_context);
    stream.wait(source_context.stream.record());
    stream.wait(target_context.stream.record());
    copy(source.view(), target.view(), stream);
    stream.synchronize();
    EXPECT_TRUE(kit::same_bits(kit::to_host(target, target_context), want)) << to_string(shape);
  }
}

TEST_P(CopyTest, FillsMemoryOfAnyDevice) {
  if (const std::string reason = absence(); !reason.empty()) GTEST_SKIP() << reason;
  const Context context = kit::context(GetParam().target);
  const Stream stream = Stream::create(GetParam().stream);
  const Array target = Array::zeros({100}, Dtype::u8, context);
  stream.wait(context.stream.record());
  fill_bytes(target.view(), 5, stream);
  stream.synchronize();
  EXPECT_EQ(kit::values(kit::to_host(target, context)), filled(100, 5));
}

TEST(Context, Create) {
  const Context context = Context::create(Device::cpu(), 1);
  EXPECT_EQ(context.device(), Device::cpu());
  EXPECT_EQ(context.memory, host_memory());
  EXPECT_EQ(context.scratch, host_memory());
  EXPECT_ERROR(Context::create(Device::cuda(99)), unsupported,
               kit::caught([] { device_from_name("cuda:99"); }).text);
}

}  // namespace
}  // namespace forebay
