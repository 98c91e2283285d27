#include "kit/kit.h"

#include <forebay/ops/permute/permute.h>

namespace forebay {
namespace {

class PermuteTest : public kit::DeviceTest {};

DEVICE_TEST(PermuteTest, MovesEveryElementOfEveryDtypeAndLayout) {
  const Context context = kit::context(device());
  for (Dtype dtype : kAllDtypes) {
    const Array x = kit::random({2, 5, 7, 3}, dtype, 11, 0, 200);
    for (kit::Layout layout : kit::layouts()) {
      const Array device = kit::to_device(kit::with_layout(x, layout), context);
      for (const auto& axes :
           {std::vector<std::int64_t>{0, 3, 1, 2}, {3, 2, 1, 0}, {0, 1, 2, 3}, {-1, 0, -2, 1}}) {
        const Array got = kit::to_host(permute(device, {.axes = axes}, context), context);
        Dims dims;
        for (std::int64_t axis : axes)
          dims.push_back(axis);
        EXPECT_TRUE(kit::same_bits(got, x.permute(dims))) << name_of(dtype);
      }
      EXPECT_TRUE(kit::same_bits(kit::to_host(permute(device, {}, context), context),
                                 x.permute({3, 2, 1, 0})));
    }
  }
}

DEVICE_TEST(PermuteTest, TakesOddSizes) {
  const Context context = kit::context(device());
  for (const Dims& shape :
       {Dims{1, 1025}, Dims{1025, 1}, Dims{33, 31}, Dims{0, 3}, Dims{128, 1023}}) {
    const Array x = kit::random(shape, Dtype::f32, 5);
    const Array got =
        kit::to_host(permute(kit::to_device(x, context), {.axes = {1, 0}}, context), context);
    EXPECT_TRUE(kit::same_bits(got, x.permute({1, 0})));
  }
  const Array scalar = kit::random({}, Dtype::f32, 5);
  EXPECT_TRUE(kit::same_bits(
      kit::to_host(permute(kit::to_device(scalar, context), {}, context), context), scalar));
}

DEVICE_TEST(PermuteTest, OwnsItsMemory) {
  const Context context = kit::context(device());
  const Array x = kit::to_device(kit::random({4, 5}, Dtype::f32, 5), context);
  EXPECT_NE(permute(x, {.axes = {0, 1}}, context).data(), x.data());
}

TEST(PermuteErrors, NameTheAxes) {
  const Context context = kit::context(Device::cpu());
  const Array x = kit::random({2, 3}, Dtype::u8, 1);
  EXPECT_ERROR(permute(x, {.axes = {0, 0}}, context), invalid,
               "permute: axes (0, 0) do not name each of the 2 axes of shape (2, 3) once.");
  EXPECT_ERROR(permute(x, {.axes = {0, 1, 2, 3, 4, 5, 6, 7, 8}}, context), invalid,
               "permute: `axes` has 9 entries; arrays have at most 8 axes.");
}

}  // namespace
}  // namespace forebay
