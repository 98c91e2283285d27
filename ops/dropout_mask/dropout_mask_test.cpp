#include <forebay/ops/dropout_mask/dropout_mask.h>

#include <forebay/ops/random_test.h>

namespace forebay {
namespace {

using test::draw_of;

constexpr int kDraws = 2;  // in every run for ever

class DropoutMaskTest : public kit::DeviceTest {};

Array run(const Array& host, const DropoutMask& settings, const Draw& draw,
          const Context& context) {
  return kit::to_host(dropout_mask(kit::to_device(host, context), settings, draw, context),
                      context);
}

DEVICE_TEST(DropoutMaskTest, KeepsWhatItsWordsSay) {
  const Context context = kit::context(device());
  const std::vector<std::int64_t> ids = {5, 0, (std::int64_t{1} << 40) + 7};
  for (const Dims& shape : {Dims{3}, Dims{3, 1025}, Dims{3, 4, 5, 6}}) {
    for (const double p : {0.0, 0.1, 0.5, 0.875, 1.0}) {
      const Array got = run(kit::random(shape, Dtype::c64, 1), {.p = p, .stream = 2},
                            draw_of(ids, context, 11, 99), context);
      ASSERT_EQ(got.dtype(), Dtype::boolean);
      const std::int64_t elements = got.count() / 3;
      for (std::int64_t i = 0; i < got.count(); ++i) {
        const std::uint32_t word = test::word_of(
            kDraws, 2, 99, 11, ids[static_cast<std::size_t>(i / elements)], i % elements);
        ASSERT_EQ(kit::value(got.view(), i), word >= p * 0x1p32) << p << " " << i;
      }
    }
  }
}

DEVICE_TEST(DropoutMaskTest, ScalesWhatItKeeps) {
  const Context context = kit::context(device());
  const Draw draw = draw_of(4, context);
  const Array x = kit::random({4, 100}, Dtype::u8, 1);
  const Array kept = run(x, {.p = 0.2}, draw, context);
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16, Dtype::f32, Dtype::f64}) {
    const Array ones = run(x, {.p = 0.2, .dtype = dtype}, draw, context);
    const Array scaled = run(x, {.p = 0.2, .dtype = dtype, .scale = true}, draw, context);
    const Array value = kit::generate({1}, dtype, [](std::int64_t) { return 1 / (1 - 0.2); });
    for (std::int64_t i = 0; i < x.count(); ++i) {
      EXPECT_EQ(kit::value(ones.view(), i), kit::value(kept.view(), i));
      EXPECT_EQ(kit::value(scaled.view(), i),
                kit::value(kept.view(), i) * kit::value(value.view(), 0));
    }
  }
}

DEVICE_TEST(DropoutMaskTest, DropsTheShareThatItSays) {
  const Context context = kit::context(device());
  const double n = 500 * 400;
  const Array x = kit::generate({500, 400}, Dtype::u8, [](std::int64_t) { return 0; });
  for (const double p : {0.1, 0.5, 0.9}) {
    const auto kept = kit::values(run(x, {.p = p}, draw_of(500, context), context));
    EXPECT_NEAR(test::moments_of(kept).mean, 1 - p, 5 * std::sqrt(p * (1 - p) / n));
    for (const std::int64_t lag : {1, 2, 4, 400}) {
      const std::vector<double> first(kept.begin(), kept.end() - lag),
          second(kept.begin() + lag, kept.end());
      EXPECT_LT(std::abs(test::correlation_of(first, second)), test::kMostCorrelation) << lag;
    }
  }
}

TEST(DropoutMaskErrors, SayWhatIsAllowed) {
  const Context context = kit::context(Device::cpu());
  const Array x = kit::random({3, 4}, Dtype::f32, 1);
  const Draw draw = draw_of(3, context);
  EXPECT_ERROR(dropout_mask(x, {.p = 1.5}, draw, context), invalid,
               "dropout_mask: `p` is 1.5; it must be between 0 and 1.");
  EXPECT_ERROR(dropout_mask(x, {.dtype = Dtype::u8}, draw, context), invalid,
               "dropout_mask: `dtype` is u8; it must be bool, f16, bf16, f32 or f64.");
  EXPECT_ERROR(dropout_mask(x, {.scale = true}, draw, context), invalid,
               "dropout_mask: `scale` needs a float type for 1 / (1 - p); set `dtype`.");
  EXPECT_ERROR(dropout_mask(x, {.p = 1, .dtype = Dtype::f32, .scale = true}, draw, context),
               invalid, "dropout_mask: `scale` with `p` 1 divides by 0; nothing would be kept.");
  EXPECT_ERROR(dropout_mask(kit::random({}, Dtype::f32, 1), {}, draw, context), invalid,
               "dropout_mask: `x` is a scalar, shape (); axis 0 of a random op's input runs over "
               "the samples.");
}

}  // namespace
}  // namespace forebay
