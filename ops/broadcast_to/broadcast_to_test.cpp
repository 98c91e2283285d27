#include "kit/kit.h"

#include <forebay/array/require.h>
#include <forebay/ops/broadcast_to/broadcast_to.h>

namespace forebay {
namespace {

class BroadcastToTest : public kit::DeviceTest {};

Array run(const Array& host, const BroadcastTo& settings, const Context& context) {
  return kit::to_host(broadcast_to(kit::to_device(host, context), settings, context), context);
}

DEVICE_TEST(BroadcastToTest, RepeatsAxesOfEveryDtypeAndLayout) {
  const Context context = kit::context(device());
  for (const Dtype dtype : kAllDtypes) {
    const Array x = kit::random({4, 1, 7}, dtype, 1);
    const auto values = kit::complex_values(x);
    std::vector<std::complex<double>> want;
    for (std::int64_t n = 0; n < 2; ++n) {
      for (std::int64_t i = 0; i < 4; ++i) {
        for (std::int64_t j = 0; j < 5; ++j) {
          for (std::int64_t k = 0; k < 7; ++k)
            want.push_back(values[static_cast<std::size_t>(i * 7 + k)]);
        }
      }
    }
    for (const kit::Layout layout : kit::layouts()) {
      const Array strided = kit::with_layout(x, layout);
      EXPECT_TRUE(kit::near(run(strided, {.shape = {2, 4, 5, 7}}, context), want, 0));
      EXPECT_TRUE(kit::near(run(strided, {.shape = {2, -1, 5, -1}}, context), want, 0));
      EXPECT_TRUE(kit::same_bits(run(strided, {.shape = {4, 1, 7}}, context), x));
    }
  }
  const Array one = kit::random({1}, Dtype::f32, 1);
  EXPECT_EQ(run(one, {.shape = {0}}, context).shape(), Dims{0});
  EXPECT_EQ(run(one, {.shape = {1025, 3, -1}}, context).shape(), (Dims{1025, 3, 1}));
  EXPECT_EQ(run(kit::random({}, Dtype::f32, 1), {.shape = {3}}, context).shape(), Dims{3});
  EXPECT_EQ(run(kit::random({}, Dtype::f32, 1), {}, context).shape(), Dims{});
}

TEST(BroadcastToErrors, SayWhatIsAllowed) {
  const Context context = kit::context(Device::cpu());
  const Array x = kit::random({3, 1}, Dtype::f32, 1);
  EXPECT_ERROR(
      broadcast_to(x, {.shape = {4, 5}}, context), invalid,
      "broadcast_to: `x` of shape (3, 1) does not broadcast to `shape` (4, 5); its extents "
      "must be 1 or those of the last axes.");
  EXPECT_ERROR(broadcast_to(x, {.shape = {3}}, context), invalid,
               "broadcast_to: `x` of shape (3, 1) does not broadcast to `shape` (3,); its extents "
               "must be 1 or those of the last axes.");
  EXPECT_ERROR(broadcast_to(x, {.shape = {-1, 3, 1}}, context), invalid,
               "broadcast_to: `shape` (-1, 3, 1) has -1 for axis 0, which `x` of shape (3, 1) does "
               "not have; give its extent.");
  EXPECT_ERROR(broadcast_to(x, {.shape = {-2, 1}}, context), invalid,
               "broadcast_to: `shape` is -2; it must be at least -1.");
  EXPECT_ERROR(broadcast_to(x, {.shape = {INT64_MAX, 3, 1}}, context), invalid,
               "shape (9223372036854775807, 3, 1) of f32 is larger than 2^63 - 1 bytes.");
}

}  // namespace
}  // namespace forebay
