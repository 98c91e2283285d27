#include "kit/kit.h"

#include <forebay/array/require.h>
#include <forebay/ops/crop/crop.h>

namespace forebay {
namespace {

class CropTest : public kit::DeviceTest {};

Array run(const Array& host, const Crop& settings, const Context& context) {
  return kit::to_host(crop(kit::to_device(host, context), settings, context), context);
}

/// Python's range(*slice(start, stop, step).indices(extent)).
std::vector<std::int64_t> positions(std::int64_t extent, std::int64_t start, std::int64_t stop,
                                    std::int64_t step) {
  std::vector<std::int64_t> result;
  const auto place = [&](std::int64_t p) { return p < 0 ? p + extent : p; };
  if (step > 0) {
    for (std::int64_t i = std::max<std::int64_t>(place(start), 0);
         i < std::min(place(stop), extent); i += step)
      result.push_back(i);
  } else {
    for (std::int64_t i = std::min(place(start), extent - 1);
         i > std::max<std::int64_t>(place(stop), -1); i += step)
      result.push_back(i);
  }
  return result;
}

DEVICE_TEST(CropTest, SlicesAsPythonDoes) {
  const Context context = kit::context(device());
  const Array x = kit::random({2, 7, 3}, Dtype::i16, 1, -1000, 1000);
  for (const std::int64_t start : {-9, -7, -3, 0, 2, 7}) {
    for (const std::int64_t stop : {-9, -1, 0, 3, 50}) {
      for (const std::int64_t step : {-8, -2, 1, 3}) {
        std::vector<double> want;
        const auto kept = positions(7, start, stop, step);
        for (std::int64_t i = 0; i < 2; ++i) {
          for (const std::int64_t p : kept) {
            for (std::int64_t k = 0; k < 3; ++k)
              want.push_back(kit::value(x.view(), (i * 7 + p) * 3 + k));
          }
        }
        const Array got =
            run(x, {.axes = {1}, .start = {start}, .stop = {stop}, .step = {step}}, context);
        EXPECT_EQ(got.shape(), (Dims{2, std::ssize(kept), 3}))
            << start << ":" << stop << ":" << step;
        EXPECT_EQ(kit::values(got), want) << start << ":" << stop << ":" << step;
      }
    }
  }
}

DEVICE_TEST(CropTest, TakesOpenEndsSeveralAxesEveryDtypeAndLayout) {
  const Context context = kit::context(device());
  for (const Dtype dtype : kAllDtypes) {
    const Array x = kit::random({3, 8, 9}, dtype, 2);
    for (const kit::Layout layout : kit::layouts()) {
      const Array strided = kit::with_layout(x, layout);
      const auto same = [&](const Crop& settings, const Array& want) {
        EXPECT_TRUE(kit::same_bits(run(strided, settings, context), kit::to_host(want, context)));
      };
      same({.axes = {1, -1}, .start = {2}, .stop = {-2}}, x.slice(1, 2, 6).slice(2, 2, 7));
      same({.axes = {2, 0}, .start = {1, 0}, .stop = {9, 2}}, x.slice(2, 1, 9).slice(0, 0, 2));
      same({.axes = {1}, .start = {3}}, x.slice(1, 3, 8));
      same({.axes = {1}, .stop = {3}}, x.slice(1, 0, 3));
      same({.axes = {1}, .step = {-3}}, x.slice(1, INT64_MAX, INT64_MIN, -3));
      same({.axes = {1}, .step = {INT64_MIN}}, x.slice(1, 7, 6, -1));
      same({.axes = {1}, .start = {1}, .step = {INT64_MAX}}, x.slice(1, 1, 2));
    }
  }
  EXPECT_EQ(
      run(kit::random({0, 4}, Dtype::f32, 1), {.axes = {1, 0}, .start = {1}}, context).shape(),
      (Dims{0, 3}));
}

TEST(CropErrors, SayWhatIsAllowed) {
  const Context context = kit::context(Device::cpu());
  const Array x = kit::random({3, 4}, Dtype::f32, 1);
  EXPECT_ERROR(crop(x, {.axes = {2}}, context), invalid,
               "crop: `axes` has 2, but `x` has shape (3, 4); its axes are -2 to 1.");
  EXPECT_ERROR(crop(x, {.axes = {1, -1}}, context), invalid,
               "crop: `axes` names axis 1 twice; give each axis once.");
  EXPECT_ERROR(crop(x, {.start = {1}}, context), invalid,
               "crop: `axes` is empty; name at least one axis.");
  EXPECT_ERROR(crop(x, {.axes = {1}, .step = {0}}, context), invalid,
               "crop: `step` is 0; it must not be.");
  EXPECT_ERROR(crop(x, {.axes = {0, 1}, .stop = {1, 2, 3}}, context), invalid,
               "crop: `stop` has 3 entries for 2 axes; give one for each, or one for all.");
}

}  // namespace
}  // namespace forebay
