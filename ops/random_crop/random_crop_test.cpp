#include <forebay/ops/random_crop/random_crop.h>

#include <map>

#include <forebay/ops/random_test.h>

namespace forebay {
namespace {

using test::draw_of;

constexpr int kDraws = 4;  // in every run for ever

class RandomCropTest : public kit::DeviceTest {};

Array run(const Array& host, const RandomCrop& settings, const Draw& draw, const Context& context) {
  return kit::to_host(random_crop(kit::to_device(host, context), settings, draw, context), context);
}

/// Element by element. `settings` has an entry for each axis.
std::vector<std::complex<double>> cropped(const Array& x, const RandomCrop& settings,
                                          const std::vector<std::int64_t>& ids, const Dims& shape) {
  std::vector<std::complex<double>> result;
  for (std::int64_t i = 0; i < count_of(shape); ++i) {
    std::int64_t rest = i, offset = 0;
    Dims index = shape;
    for (int axis = shape.rank - 1; axis >= 0; --axis) {
      index[axis] = rest % shape[axis];
      rest /= shape[axis];
    }
    bool inside = true;
    for (std::size_t k = 0; k < settings.axes.size(); ++k) {
      const int axis = static_cast<int>(settings.axes[k]);
      const std::int64_t extent = x.shape()[axis], padding = settings.padding[k];
      const std::uint64_t word = test::word_of(
          kDraws, 0, 99, 11, ids[static_cast<std::size_t>(index[0])], settings.axes[k]);
      const auto places = static_cast<std::uint64_t>(extent + 2 * padding - settings.size[k] + 1);
      index[axis] += static_cast<std::int64_t>(word * places >> 32) - padding;
      inside &= index[axis] >= 0 && index[axis] < extent;
    }
    for (int axis = 0; axis < shape.rank; ++axis)
      offset = offset * x.shape()[axis] + index[axis];
    result.push_back(inside ? kit::complex_value(x.view(), offset)
                            : std::complex<double>(settings.value.f64()));
  }
  return result;
}

DEVICE_TEST(RandomCropTest, KeepsWhatItsWordsSay) {
  const Context context = kit::context(device());
  const std::vector<std::int64_t> ids = {5, 0, (std::int64_t{1} << 40) + 7, 1, 2};
  const Draw draw = draw_of(ids, context, 11, 99);
  const std::vector<std::pair<Dims, RandomCrop>> cases = {
      {{5, 9}, {.axes = {1}, .size = {4}, .padding = {0}}},
      {{5, 9}, {.axes = {1}, .size = {9}, .padding = {0}}},
      {{5, 9}, {.axes = {1}, .size = {12}, .padding = {3}, .value = 7}},
      {{5, 6, 8}, {.axes = {1, 2}, .size = {6, 8}, .padding = {4, 2}, .value = 3}},
      {{5, 6, 8, 3}, {.axes = {1, 2}, .size = {5, 4}, .padding = {0, 0}}},
      {{5, 6, 8, 3}, {.axes = {2, 1}, .size = {8, 7}, .padding = {3, 1}, .value = 1}},
      {{5, 9, 40, 3}, {.axes = {1, 2}, .size = {7, 32}, .padding = {0, 0}}},
      {{5, 9, 21, 3}, {.axes = {1, 2}, .size = {9, 16}, .padding = {2, 3}, .value = 1}},
      {{5, 3, 12, 10}, {.axes = {2, 3}, .size = {8, 8}, .padding = {2, 1}}},
      {{5, 3, 12, 10}, {.axes = {1}, .size = {2}, .padding = {0}}},
      {{5, 20000}, {.axes = {1}, .size = {18000}, .padding = {500}, .value = 9}},
      {{5, 9001, 3}, {.axes = {1}, .size = {9100}, .padding = {700}, .value = 9}},
      {{5, 3, 200, 100}, {.axes = {2, 3}, .size = {24, 24}, .padding = {0, 0}}},
      {{5, 0, 4}, {.axes = {1}, .size = {3}, .padding = {2}, .value = 5}},
  };
  for (const auto& [shape, settings] : cases) {
    for (const Dtype dtype : {Dtype::u8, Dtype::f16, Dtype::f32, Dtype::i64, Dtype::c128}) {
      const Array x = kit::random(shape, dtype, 1, 0, 99);
      Dims out = shape;
      for (std::size_t k = 0; k < settings.axes.size(); ++k)
        out[static_cast<int>(settings.axes[k])] = settings.size[k];
      const Array got = run(x, settings, draw, context);
      ASSERT_EQ(got.shape(), out);
      ASSERT_TRUE(kit::near(got, cropped(x, settings, ids, out), 0))
          << testing::PrintToString(shape) << " " << name_of(dtype);
    }
  }
}

DEVICE_TEST(RandomCropTest, TakesEveryDtypeLayoutAndOneEntryForAll) {
  const Context context = kit::context(device());
  const Draw draw = draw_of(4, context);
  for (const Dtype dtype : kAllDtypes) {
    const Array x = kit::random({4, 6, 6}, dtype, 2);
    const Array want = run(x, {.axes = {1, 2}, .size = {4, 4}, .padding = {1, 1}}, draw, context);
    for (const kit::Layout layout : kit::layouts()) {
      const RandomCrop settings{.axes = {-2, -1}, .size = {4}, .padding = {1}};
      EXPECT_TRUE(kit::same_bits(run(kit::with_layout(x, layout), settings, draw, context), want));
    }
  }
}

DEVICE_TEST(RandomCropTest, TakesEachPlaceAsOften) {
  const Context context = kit::context(device());
  const std::int64_t n = 60000;
  // Which element comes first says the place.
  const Array x = kit::generate({n, 7, 5}, Dtype::u8, [](std::int64_t i) { return i % 35; });
  const Array got = run(x, {.axes = {1, 2}, .size = {4, 2}}, draw_of(n, context), context);
  std::map<int, double> counts;
  for (std::int64_t i = 0; i < n; ++i)
    ++counts[got.as<std::uint8_t>()[i * 8]];
  ASSERT_EQ(counts.size(), 16u);  // 4 places on either axis
  double chi_square = 0;
  for (const auto& [_, count] : counts)
    chi_square += (count - n / 16.0) * (count - n / 16.0) / (n / 16.0);
  EXPECT_LT(chi_square, 55);  // of 15 degrees of freedom: once in a million
}

TEST(RandomCropErrors, SayWhatIsAllowed) {
  const Context context = kit::context(Device::cpu());
  const Array x = kit::random({3, 4, 5}, Dtype::u8, 1, 0, 9);
  const Draw draw = draw_of(3, context);
  EXPECT_ERROR(random_crop(x, {.axes = {0}, .size = {1}}, draw, context), invalid,
               "random_crop: `axes` has 0, which is the batch; it moves elements within samples, "
               "along axes 1 to 2.");
  EXPECT_ERROR(random_crop(x, {.axes = {1, 2}, .size = {1, 2, 3}}, draw, context), invalid,
               "random_crop: `size` has 3 entries for 2 axes; give one for each, or one for all.");
  EXPECT_ERROR(random_crop(x, {.axes = {1}, .size = {0}}, draw, context), invalid,
               "random_crop: `size` is 0; it must be at least 1.");
  EXPECT_ERROR(random_crop(x, {.axes = {1}, .size = {2}, .padding = {-1}}, draw, context), invalid,
               "random_crop: `padding` is -1; it must be at least 0.");
  EXPECT_ERROR(random_crop(x, {.axes = {2}, .size = {8}}, draw, context), invalid,
               "random_crop: `size` is 8, but axis 2 of `x`, shape (3, 4, 5), has 5 elements; set "
               "`padding` to 2 or more, or a smaller size.");
  EXPECT_ERROR(random_crop(x, {.axes = {2}, .size = {8}, .padding = {1}}, draw, context), invalid,
               "random_crop: `size` is 8, but axis 2 of `x`, shape (3, 4, 5), has 5 elements and 1 "
               "of padding at either end; set `padding` to 2 or more, or a smaller size.");
  EXPECT_ERROR(random_crop(x, {.axes = {2}, .size = {5}, .value = 256}, draw, context), invalid,
               "random_crop: `value` is 256, which u8 cannot hold.");
  EXPECT_ERROR(random_crop(x, {.axes = {2}, .size = {5}, .value = 0.5}, draw, context), invalid,
               "random_crop: `value` is 0.5, which u8 cannot hold.");
}

}  // namespace
}  // namespace forebay
