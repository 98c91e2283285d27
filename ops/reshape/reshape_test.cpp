#include "kit/kit.h"

#include <forebay/ops/reshape/reshape.h>

namespace forebay {
namespace {

class ReshapeTest : public kit::DeviceTest {};

DEVICE_TEST(ReshapeTest, KeepsTheElementsInRowMajorOrder) {
  const Context context = kit::context(device());
  for (Dtype dtype : kAllDtypes) {
    const Array x = kit::random({4, 6, 5}, dtype, 11, 0, 200);
    for (kit::Layout layout : kit::layouts()) {
      const Array device = kit::to_device(kit::with_layout(x, layout), context);
      for (const auto& shape :
           {std::vector<std::int64_t>{-1, 30}, {120}, {2, 2, 3, -1, 5}, {1, 4, 1, 6, 5}}) {
        Dims dims;
        for (std::int64_t extent : shape)
          dims.push_back(extent);
        const Array got = kit::to_host(reshape(device, {.shape = shape}, context), context);
        EXPECT_TRUE(kit::same_bits(got, x.reshape(resolve_reshape(120, dims)))) << name_of(dtype);
      }
    }
  }
}

DEVICE_TEST(ReshapeTest, TakesScalarsAndNothing) {
  const Context context = kit::context(device());
  const Array one = kit::to_device(kit::random({1, 1}, Dtype::f32, 1), context);
  EXPECT_EQ(reshape(one, {}, context).shape(), Dims{});
  const Array none = kit::to_device(kit::random({0, 3}, Dtype::f32, 1), context);
  EXPECT_EQ(reshape(none, {.shape = {5, 0}}, context).shape(), (Dims{5, 0}));
}

TEST(ReshapeErrors, NameTheCounts) {
  const Context context = kit::context(Device::cpu());
  const Array x = kit::random({2, 3}, Dtype::u8, 1);
  EXPECT_ERROR(reshape(x, {.shape = {4, -1}}, context), invalid,
               "reshape: 6 elements do not fit shape (4, -1); the extents must multiply to 6, and "
               "one may be -1.");
  EXPECT_ERROR(reshape(x, {.shape = {-2, 3}}, context), invalid,
               "reshape: `shape` is -2; it must be at least -1.");
}

}  // namespace
}  // namespace forebay
