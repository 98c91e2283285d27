#include <forebay/ops/random_flip/random_flip.h>

#include <forebay/ops/random_test.h>

namespace forebay {
namespace {

using test::draw_of;

constexpr int kDraws = 3;  // in every run for ever

class RandomFlipTest : public kit::DeviceTest {};

Array run(const Array& host, const RandomFlip& settings, const Draw& draw, const Context& context) {
  return kit::to_host(random_flip(kit::to_device(host, context), settings, draw, context), context);
}

/// One sample, flipped along the axes whose words say so.
Array flipped(Array sample, const std::vector<std::int64_t>& axes, double p, std::int64_t id,
              int stream = 0) {
  for (const std::int64_t axis : axes) {
    const std::uint32_t word = test::word_of(kDraws, stream, 99, 11, id, axis);
    if (word < p * 0x1p32) sample = sample.slice(static_cast<int>(axis), INT64_MAX, INT64_MIN, -1);
  }
  return kit::to_host(sample, kit::context(Device::cpu()));
}

DEVICE_TEST(RandomFlipTest, ReversesWhatItsWordsSay) {
  const Context context = kit::context(device());
  const std::vector<std::int64_t> ids = {5, 0, (std::int64_t{1} << 40) + 7, 1, 2};
  const Draw draw = draw_of(ids, context, 11, 99);
  using Axes = std::vector<std::int64_t>;
  for (const auto& [shape, axes] : {std::pair<Dims, Axes>{{5, 9}, {1}},
                                    {{5, 4, 6}, {2}},
                                    {{5, 4, 6}, {1}},
                                    {{5, 4, 6}, {1, 2}},
                                    {{5, 7, 5, 3}, {2}},
                                    {{5, 7, 5, 3}, {1, 2}},
                                    {{5, 6, 16, 3}, {2}},
                                    {{5, 6, 48, 3}, {1, 2}},
                                    {{5, 16, 2}, {1}},
                                    {{5, 3, 32, 4}, {2}},
                                    {{5, 6, 5, 16}, {1, 2}},
                                    {{5, 3, 6, 5}, {3}},
                                    {{5, 3, 64, 48}, {2, 3}},
                                    {{5, 20000}, {1}},
                                    {{5, 9000, 3}, {1}},
                                    {{5, 3, 9001}, {1}}}) {
    for (const Dtype dtype : {Dtype::u8, Dtype::f16, Dtype::f32, Dtype::f64, Dtype::c128}) {
      const Array x = kit::random(shape, dtype, 1, 0, 99);
      for (const double p : {0.0, 0.5, 1.0}) {
        const Array got = run(x, {.axes = axes, .p = p}, draw, context);
        for (std::int64_t s = 0; s < 5; ++s) {
          const std::int64_t id = ids[static_cast<std::size_t>(s)];
          ASSERT_TRUE(
              kit::same_bits(got.slice(0, s, s + 1), flipped(x.slice(0, s, s + 1), axes, p, id)))
              << testing::PrintToString(shape) << " " << name_of(dtype) << " " << p;
        }
      }
    }
  }
}

DEVICE_TEST(RandomFlipTest, TakesEveryDtypeLayoutAndNegativeAxes) {
  const Context context = kit::context(device());
  const Draw draw = draw_of(4, context, 0, 11, 99);
  for (const Dtype dtype : kAllDtypes) {
    const Array x = kit::random({4, 5, 6}, dtype, 2);
    const Array want = run(x, {.axes = {1, 2}, .stream = 3}, draw, context);
    for (std::int64_t s = 0; s < 4; ++s)
      EXPECT_TRUE(kit::same_bits(want.slice(0, s, s + 1),
                                 flipped(x.slice(0, s, s + 1), {1, 2}, 0.5, s, 3)));
    for (const kit::Layout layout : kit::layouts()) {
      EXPECT_TRUE(kit::same_bits(
          run(kit::with_layout(x, layout), {.axes = {-1, -2}, .stream = 3}, draw, context), want));
    }
  }
  EXPECT_EQ(run(kit::random({4, 0, 3}, Dtype::f32, 1), {.axes = {1}}, draw, context).shape(),
            (Dims{4, 0, 3}));
}

DEVICE_TEST(RandomFlipTest, FlipsTheShareThatItSaysAndAxesByThemselves) {
  const Context context = kit::context(device());
  const std::int64_t n = 40000;
  const Array x = kit::generate({n, 2, 2}, Dtype::u8, [](std::int64_t i) { return i % 4; });
  for (const double p : {0.5, 0.2}) {
    const Array got = run(x, {.axes = {1, 2}, .p = p}, draw_of(n, context), context);
    std::vector<double> first, second;
    for (std::int64_t i = 0; i < n; ++i) {
      const int corner = got.as<std::uint8_t>()[4 * i];
      first.push_back(corner / 2);
      second.push_back(corner % 2);
    }
    const double deviation = std::sqrt(p * (1 - p) / n);
    EXPECT_NEAR(test::moments_of(first).mean, p, 5 * deviation);
    EXPECT_NEAR(test::moments_of(second).mean, p, 5 * deviation);
    EXPECT_LT(std::abs(test::correlation_of(first, second)), test::kMostCorrelation);
    const std::vector<double> before(first.begin(), first.end() - 1),
        after(first.begin() + 1, first.end());
    EXPECT_LT(std::abs(test::correlation_of(before, after)), test::kMostCorrelation);
  }
}

TEST(RandomFlipErrors, SayWhatIsAllowed) {
  const Context context = kit::context(Device::cpu());
  const Array x = kit::random({3, 4, 5}, Dtype::f32, 1);
  const Draw draw = draw_of(3, context);
  EXPECT_ERROR(random_flip(x, {}, draw, context), invalid,
               "random_flip: `axes` is empty; name at least one axis.");
  EXPECT_ERROR(random_flip(x, {.axes = {-3}}, draw, context), invalid,
               "random_flip: `axes` has -3, which is the batch; it moves elements within samples, "
               "along axes 1 to 2.");
  EXPECT_ERROR(random_flip(x, {.axes = {3}}, draw, context), invalid,
               "random_flip: `axes` has 3, but `x` has shape (3, 4, 5); its axes are -3 to 2.");
  EXPECT_ERROR(random_flip(x, {.axes = {1, -2}}, draw, context), invalid,
               "random_flip: `axes` names axis 1 twice; give each axis once.");
  EXPECT_ERROR(random_flip(x, {.axes = {1}, .p = 2}, draw, context), invalid,
               "random_flip: `p` is 2; it must be between 0 and 1.");
  EXPECT_ERROR(random_flip(x, {.axes = {1}}, draw_of(4, context), context), invalid,
               "random_flip: `x` has shape (3, 4, 5), but there are 4 samples; axis 0 of a random "
               "op's input runs over the samples.");
}

}  // namespace
}  // namespace forebay
