#include "kit/kit.h"

#include <forebay/array/require.h>
#include <forebay/ops/flip/flip.h>

namespace forebay {
namespace {

class FlipTest : public kit::DeviceTest {};

Array run(const Array& host, const Flip& settings, const Context& context) {
  return kit::to_host(flip(kit::to_device(host, context), settings, context), context);
}

DEVICE_TEST(FlipTest, ReversesAxesOfEveryDtypeLayoutAndSize) {
  const Context context = kit::context(device());
  for (const Dtype dtype : kAllDtypes) {
    const Array x = kit::random({3, 4, 17}, dtype, 1);
    const auto values = kit::complex_values(x);
    std::vector<std::complex<double>> last, both;
    for (std::int64_t i = 0; i < 3; ++i) {
      for (std::int64_t j = 0; j < 4; ++j) {
        for (std::int64_t k = 0; k < 17; ++k) {
          last.push_back(values[static_cast<std::size_t>((i * 4 + j) * 17 + 16 - k)]);
          both.push_back(values[static_cast<std::size_t>(((2 - i) * 4 + j) * 17 + 16 - k)]);
        }
      }
    }
    for (const kit::Layout layout : kit::layouts()) {
      const Array strided = kit::with_layout(x, layout);
      EXPECT_TRUE(kit::near(run(strided, {.axes = {-1}}, context), last, 0));
      EXPECT_TRUE(kit::near(run(strided, {.axes = {2, 0}}, context), both, 0));
    }
  }
  for (const std::int64_t extent : {0, 1, 2, 255, 1025}) {
    const Array x = kit::generate({extent}, Dtype::f32, [](std::int64_t i) { return double(i); });
    std::vector<double> want;
    for (std::int64_t i = extent - 1; i >= 0; --i)
      want.push_back(static_cast<double>(i));
    EXPECT_EQ(kit::values(run(x, {.axes = {0}}, context)), want);
  }
}

TEST(FlipErrors, SayWhatIsAllowed) {
  const Context context = kit::context(Device::cpu());
  const Array x = kit::random({3, 4}, Dtype::f32, 1);
  EXPECT_ERROR(flip(x, {}, context), invalid, "flip: `axes` is empty; name at least one axis.");
  EXPECT_ERROR(flip(x, {.axes = {2}}, context), invalid,
               "flip: `axes` has 2, but `x` has shape (3, 4); its axes are -2 to 1.");
  EXPECT_ERROR(flip(x, {.axes = {0, -2}}, context), invalid,
               "flip: `axes` names axis 0 twice; give each axis once.");
}

}  // namespace
}  // namespace forebay
