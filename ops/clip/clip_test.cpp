#include "kit/kit.h"
#include "kit/oracle.h"

#include <forebay/ops/clip/clip.h>

namespace forebay {
namespace {

class ClipTest : public kit::DeviceTest {};

Array run(const Array& host, const Clip& settings, const Context& context) {
  return kit::to_host(clip(kit::to_device(host, context), settings, context), context);
}

/// The law: min(max(x, lo), hi), NaN from any of them; of equal zeros the bound.
long double law(long double x, long double low, long double high) {
  if (std::isnan(x) || std::isnan(low) || std::isnan(high)) return NAN;
  const long double raised = x > low ? x : low;
  return raised < high ? raised : high;
}

DEVICE_TEST(ClipTest, FollowsTheLawForFloats) {
  const Context context = kit::context(device());
  const double bounds[] = {-3, 0.1, 3, 1e300, -INFINITY, INFINITY, NAN};
  for (Dtype dtype : {Dtype::f16, Dtype::bf16, Dtype::f32, Dtype::f64}) {
    const Array x = kit::edge_values(dtype);
    for (double low : bounds) {
      for (double high : bounds) {
        std::vector<long double> want = kit::exact(x);
        for (long double& value : want)
          value = law(value, kit::round_to(dtype, low), kit::round_to(dtype, high));
        EXPECT_TRUE(kit::same_bits(run(x, {.min = low, .max = high}, context),
                                   kit::saturated(dtype, want)))
            << name_of(dtype) << " to " << low << " .. " << high;
      }
    }
  }
}

DEVICE_TEST(ClipTest, ComparesIntegersExactlyWithBoundsOfAnySize) {
  const Context context = kit::context(device());
  const std::vector<Number> bounds = {0,
                                      1,
                                      -1,
                                      5,
                                      -129,
                                      127,
                                      300,
                                      70000,
                                      INT64_MIN,
                                      INT64_MAX,
                                      INT64_MAX - 1,
                                      UINT64_MAX,
                                      UINT64_MAX - 1,
                                      (std::int64_t{1} << 53) + 1};
  for (Dtype dtype : kAllDtypes) {
    if (!is_integer(dtype)) continue;
    const Array x = kit::edge_values(dtype);
    const auto whole = [](const Number& n) {
      return n.kind() == Number::Kind::u64 ? static_cast<long double>(n.u64())
                                           : static_cast<long double>(n.i64());
    };
    for (const Number& low : bounds) {
      for (const Number& high : bounds) {
        std::vector<long double> want = kit::exact(x);
        for (long double& value : want)
          value = std::min(std::max(value, whole(low)), whole(high));
        EXPECT_TRUE(kit::same_bits(run(x, {.min = low, .max = high}, context),
                                   kit::saturated(dtype, want)));
      }
    }
  }
}

DEVICE_TEST(ClipTest, ConvertsToAnotherDtypeWithoutLosingTheLaw) {
  const Context context = kit::context(device());
  const Array wide =
      Array::from<std::int32_t>({5}, std::vector<std::int32_t>{-5, 0, 100, 299, 70000});
  EXPECT_EQ(kit::values(run(wide, {.min = 1, .max = 300, .dtype = Dtype::u8}, context)),
            (std::vector<double>{1, 1, 100, 255, 255}));
  const Array narrow = Array::from<std::uint8_t>({3}, std::vector<std::uint8_t>{0, 7, 255});
  EXPECT_EQ(kit::values(run(narrow, {.min = 300, .dtype = Dtype::i32}, context)),
            (std::vector<double>{300, 300, 300}));
  EXPECT_EQ(kit::values(run(narrow, {.min = 0.5, .max = 9.25, .dtype = Dtype::f32}, context)),
            (std::vector<double>{0.5, 7, 9.25}));
  const Array floats = Array::from<float>({4}, std::vector<float>{-1.5F, 2.75F, 1e10F, NAN});
  EXPECT_EQ(kit::values(run(floats, {.min = 1, .dtype = Dtype::u8}, context)),
            (std::vector<double>{1, 2, 255, 0}));
}

DEVICE_TEST(ClipTest, TakesOneBoundEveryLayoutAndSize) {
  const Context context = kit::context(device());
  for (const Dims& shape : {Dims{}, Dims{0}, Dims{1}, Dims{3}, Dims{1023}, Dims{1024}, Dims{1025},
                            Dims{5, 7, 31}, Dims{2, 0, 3}}) {
    const Array x = kit::random(shape, Dtype::f32, 7);
    auto floor = kit::values(x), ceiling = floor;
    for (double& value : floor)
      value = std::max(value, -1.0);
    for (double& value : ceiling)
      value = std::min(value, 1.0);
    for (kit::Layout layout : kit::layouts()) {
      const Array strided = kit::with_layout(x, layout);
      EXPECT_TRUE(kit::near(run(strided, {.min = -1}, context), floor, 0));
      EXPECT_TRUE(kit::near(run(strided, {.max = 1}, context), ceiling, 0));
    }
  }
}

TEST(ClipErrors, SayWhatIsAllowed) {
  const Context context = kit::context(Device::cpu());
  const Array x = kit::random({2}, Dtype::u8, 1);
  EXPECT_ERROR(clip(x, {}, context), invalid,
               "clip: neither `min` nor `max` is given; give one or both.");
  EXPECT_ERROR(clip(x, {.max = 0.5}, context), invalid,
               "clip: `max` is 0.5 but `x` has dtype u8; integers take whole bounds. Write a whole "
               "number, or name a float "
               "`dtype`.");
  EXPECT_ERROR(clip(x, {.min = 0, .dtype = Dtype::c64}, context), invalid,
               "clip: `dtype` is c64; it must be an integer or float type.");
  EXPECT_ERROR(clip(kit::random({2}, Dtype::c64, 1), {.min = 0}, context), unsupported,
               "clip: `x` has dtype c64; supported: integers, f16, bf16, f32, f64. Add an `abs` "
               "stage before it.");
  EXPECT_ERROR(clip(kit::random({2}, Dtype::boolean, 1), {.min = 0}, context), unsupported,
               "clip: `x` has dtype bool; supported: integers, f16, bf16, f32, f64. Add a `cast` "
               "stage before it.");
}

}  // namespace
}  // namespace forebay
