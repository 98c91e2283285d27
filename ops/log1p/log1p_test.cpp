#include "kit/kit.h"
#include "kit/oracle.h"

#include <forebay/ops/log1p/log1p.h>

namespace forebay {
namespace {

class Log1pTest : public testing::TestWithParam<Device> {};
INSTANTIATE_TEST_SUITE_P(Devices, Log1pTest, testing::ValuesIn(kit::devices()),
                         [](const auto& test) { return test.param.is_cuda() ? "cuda" : "cpu"; });

Array run(const Array& host, const Log1p& settings, const Context& context) {
  return kit::to_host(log1p(kit::to_device(host, context), settings, context), context);
}

/// |got - want| in units in the last place of Out at want; 0 for equal infinities and two NaN.
template <class Out>
long double error_in_ulp(Out got, long double want) {
  const long double rounded = kit::exact(kit::round_to<Out>(want)), value = kit::exact(got);
  if (std::isnan(want) || std::isnan(value))
    return std::isnan(want) && std::isnan(value) ? 0 : INFINITY;
  if (std::isinf(rounded) || std::isinf(value)) return rounded == value ? 0 : INFINITY;
  return std::abs(value - want) / kit::ulp(kit::format_of<Out>(), want);
}

TEST_P(Log1pTest, IsWithinTwoUlpOfTheTrueValue) {
  SKIP_WITHOUT(GetParam());
  const Context context = kit::context(GetParam());
  for (Dtype dtype : kAllDtypes) {
    if (is_complex(dtype)) continue;
    for (Dtype result : {Dtype::f16, Dtype::bf16, Dtype::f32, Dtype::f64}) {
      dispatch(kit::RealsAndBool{}, dtype, "test", "x", [&]<class T>(Type<T>) {
        dispatch(kit::Floats{}, result, "test", "dtype", [&]<class Out>(Type<Out>) {
          const bool in_f64 = dtype == Dtype::f64 || result == Dtype::f64;
          const auto values = kit::edge_values<T>();
          const Array got = run(kit::array_of(values), {.dtype = result}, context);
          ASSERT_EQ(got.dtype(), result);
          for (std::size_t i = 0; i < values.size(); ++i) {
            // What is computed is the function of the converted input.
            const long double x = kit::exact(values[i]);
            const long double converted =
                in_f64 ? kit::exact(kit::round_to<double>(x)) : kit::exact(kit::round_to<float>(x));
            EXPECT_LE(error_in_ulp(got.as<Out>()[i], std::log1p(converted)), 2)
                << name_of(dtype) << " " << static_cast<double>(x) << " to " << name_of(result)
                << " gives " << static_cast<double>(kit::exact(got.as<Out>()[i]));
          }
        });
      });
    }
  }
}

TEST_P(Log1pTest, IsWithinTwoUlpEverywhereInF32) {
  SKIP_WITHOUT(GetParam());
  const Context context = kit::context(GetParam());
  // Every exponent, both signs, thousands of significands.
  const Array x = kit::generate({1 << 18}, Dtype::f32, [](std::int64_t i) {
    const double significand = 1 + static_cast<double>(i * 2654435761 % 1048576) / 1048576;
    return std::ldexp(i % 2 == 0 ? significand : -significand, static_cast<int>(i / 2 % 300) - 170);
  });
  const Array got = run(x, {}, context);
  long double worst = 0;
  for (std::int64_t i = 0; i < x.count(); ++i) {
    worst =
        std::max(worst, error_in_ulp(got.as<float>()[i], std::log1p(kit::exact(x.as<float>()[i]))));
  }
  EXPECT_LE(worst, 2);
}

TEST_P(Log1pTest, ChoosesTheResultsDtypeAndTakesEveryLayoutAndSize) {
  SKIP_WITHOUT(GetParam());
  const Context context = kit::context(GetParam());
  EXPECT_EQ(run(kit::random({3}, Dtype::u8, 1), {}, context).dtype(), Dtype::f32);
  EXPECT_EQ(run(kit::random({3}, Dtype::bf16, 1), {}, context).dtype(), Dtype::bf16);
  EXPECT_EQ(run(kit::random({3}, Dtype::f64, 1), {}, context).dtype(), Dtype::f64);
  for (const Dims& shape :
       {Dims{}, Dims{0}, Dims{1}, Dims{3}, Dims{1023}, Dims{1025}, Dims{5, 7, 31}}) {
    const Array x = kit::random(shape, Dtype::f32, 7, 0.5, 4);
    std::vector<double> want = kit::values(x);
    for (double& value : want)
      value = std::log1p(value);
    for (kit::Layout layout : kit::layouts()) {
      EXPECT_TRUE(kit::near(run(kit::with_layout(x, layout), {}, context), want,
                            4 * kit::epsilon(Dtype::f32)));
    }
  }
}

TEST(Log1pErrors, SayWhatIsAllowed) {
  const Context context = kit::context(Device::cpu());
  EXPECT_ERROR(log1p(kit::random({2}, Dtype::c64, 1), {}, context), unsupported,
               "log1p: `x` has dtype c64; supported: bool, integers, f16, bf16, f32, f64. Add an "
               "`abs` stage before it.");
  EXPECT_ERROR(log1p(kit::random({2}, Dtype::u8, 1), {.dtype = Dtype::u8}, context), invalid,
               "log1p: `dtype` is u8; it must be f16, bf16, f32 or f64.");
}

}  // namespace
}  // namespace forebay
