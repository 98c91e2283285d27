#include "kit/kit.h"
#include "kit/oracle.h"

#include <forebay/ops/scale/scale.h>

namespace forebay {
namespace {

class ScaleTest : public kit::DeviceTest {};

Array run(const Array& host, const Scale& settings, const Context& context) {
  return kit::to_host(scale(kit::to_device(host, context), settings, context), context);
}

DEVICE_TEST(ScaleTest, RoundsTheProductAndTheSumInTheWorkingType) {
  const Context context = kit::context(device());
  for (Dtype dtype : kAllDtypes) {
    if (is_complex(dtype)) continue;
    const Array x = kit::edge_values(dtype);
    for (Dtype result : {Dtype::f16, Dtype::bf16, Dtype::f32, Dtype::f64}) {
      std::vector<long double> want = kit::exact(x);
      for (long double& value : want) {
        if (dtype == Dtype::f64 || result == Dtype::f64) {
          volatile double product = static_cast<double>(value) * 0.3;  // each operation rounded
          value = product + -1.7;
        } else {
          volatile float product = kit::saturated<float>(value) * 0.3F;
          value = product + -1.7F;
        }
      }
      EXPECT_TRUE(kit::same_bits(
          run(x, {.factor = 0.3, .offset = -1.7, .dtype = result}, context),
          kit::saturated(result, want)))
          << name_of(dtype) << " to " << name_of(result);
    }
  }
}

DEVICE_TEST(ScaleTest, ChoosesTheResultsDtypeAndSkipsWhatDoesNothing) {
  const Context context = kit::context(device());
  EXPECT_EQ(run(kit::random({3}, Dtype::u8, 1), {.factor = 2}, context).dtype(), Dtype::f32);
  EXPECT_EQ(run(kit::random({3}, Dtype::f16, 1), {.factor = 2}, context).dtype(), Dtype::f16);
  const Array zero = Array::from<float>({1}, std::vector<float>{-0.0F});
  EXPECT_TRUE(kit::same_bits(run(zero, {}, context), zero));
}

DEVICE_TEST(ScaleTest, TakesEveryLayoutAndSize) {
  const Context context = kit::context(device());
  for (const Dims& shape :
       {Dims{}, Dims{0}, Dims{1}, Dims{3}, Dims{1023}, Dims{1025}, Dims{5, 7, 31}}) {
    const Array x = kit::random(shape, Dtype::f32, 7);
    std::vector<double> want = kit::values(x);
    for (double& value : want)
      value = value * 0.5 + 1;
    for (kit::Layout layout : kit::layouts()) {
      EXPECT_TRUE(kit::near(run(kit::with_layout(x, layout), {.factor = 0.5, .offset = 1}, context),
                            want, kit::epsilon(Dtype::f32)));
    }
  }
}

TEST(ScaleErrors, SayWhatIsAllowed) {
  const Context context = kit::context(Device::cpu());
  EXPECT_ERROR(scale(kit::random({2}, Dtype::c64, 1), {}, context), unsupported,
               "scale: `x` has dtype c64; supported: bool, integers, f16, bf16, f32, f64. Add an "
               "`abs` stage before it.");
  EXPECT_ERROR(scale(kit::random({2}, Dtype::u8, 1), {.dtype = Dtype::i32}, context), invalid,
               "scale: `dtype` is i32; it must be f16, bf16, f32 or f64.");
}

}  // namespace
}  // namespace forebay
