#include "kit/kit.h"
#include "kit/oracle.h"

#include <forebay/ops/scale/scale.h>

namespace forebay {
namespace {

class ScaleTest : public testing::TestWithParam<Device> {};
INSTANTIATE_TEST_SUITE_P(Devices, ScaleTest, testing::ValuesIn(kit::devices()), kit::device_name);

Array run(const Array& host, const Scale& settings, const Context& context) {
  return kit::to_host(scale(kit::to_device(host, context), settings, context), context);
}

TEST_P(ScaleTest, RoundsTheProductAndTheSumInTheWorkingType) {
  SKIP_WITHOUT(GetParam());
  const Context context = kit::context(GetParam());
  for (Dtype dtype : kAllDtypes) {
    if (is_complex(dtype)) continue;
    for (Dtype result : {Dtype::f16, Dtype::bf16, Dtype::f32, Dtype::f64}) {
      dispatch(kit::RealsAndBool{}, dtype, "test", "x", [&]<class T>(Type<T>) {
        dispatch(kit::Floats{}, result, "test", "dtype", [&]<class Out>(Type<Out>) {
          const auto values = kit::edge_values<T>();
          std::vector<Out> want;
          for (T x : values) {
            if (dtype == Dtype::f64 || result == Dtype::f64) {
              // Each operation rounded.
              volatile double product = static_cast<double>(kit::exact(x)) * 0.3;
              want.push_back(kit::round_to<Out>(product + -1.7));
            } else {
              volatile float product = kit::saturated<float>(kit::exact(x)) * 0.3F;
              volatile float sum = product + -1.7F;
              want.push_back(kit::round_to<Out>(sum));
            }
          }
          EXPECT_TRUE(kit::same_bits(
              run(kit::array_of(values), {.factor = 0.3, .offset = -1.7, .dtype = result}, context),
              kit::array_of(want)))
              << name_of(dtype) << " to " << name_of(result);
        });
      });
    }
  }
}

TEST_P(ScaleTest, ChoosesTheResultsDtypeAndSkipsWhatDoesNothing) {
  SKIP_WITHOUT(GetParam());
  const Context context = kit::context(GetParam());
  EXPECT_EQ(run(kit::random({3}, Dtype::u8, 1), {.factor = 2}, context).dtype(), Dtype::f32);
  EXPECT_EQ(run(kit::random({3}, Dtype::f16, 1), {.factor = 2}, context).dtype(), Dtype::f16);
  const Array zero = Array::from<float>({1}, std::vector<float>{-0.0F});
  EXPECT_TRUE(kit::same_bits(run(zero, {}, context), zero));
}

TEST_P(ScaleTest, TakesEveryLayoutAndSize) {
  SKIP_WITHOUT(GetParam());
  const Context context = kit::context(GetParam());
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
