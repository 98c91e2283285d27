#include "kit/kit.h"
#include "kit/oracle.h"

#include <forebay/ops/abs/abs.h>

namespace forebay {
namespace {

class AbsTest : public kit::DeviceTest {};

Array run(const Array& host, const Context& context) {
  return kit::to_host(abs(kit::to_device(host, context), {}, context), context);
}

DEVICE_TEST(AbsTest, IsExactForReals) {
  const Context context = kit::context(device());
  for (Dtype dtype : kAllDtypes) {
    if (is_complex(dtype)) continue;
    const Array x = kit::edge_values(dtype);
    std::vector<long double> want = kit::exact(x);
    const long double least = is_signed(dtype) ? -std::ldexp(1.0L, 8 * int(size_of(dtype)) - 1) : 0;
    for (long double& value : want) {
      if (!is_integer(dtype) || value != least) value = std::abs(value);  // the least one stays
    }
    EXPECT_TRUE(kit::same_bits(run(x, context), kit::saturated(dtype, want))) << name_of(dtype);
  }
}

DEVICE_TEST(AbsTest, IsTheMagnitudeOfComplexNumbersOfAnySize) {
  const Context context = kit::context(device());
  std::vector<std::complex<float>> narrow;
  std::vector<std::complex<double>> wide;
  std::vector<double> want;
  for (float re : kit::edge_values<float>()) {
    for (float im : kit::edge_values<float>()) {
      narrow.emplace_back(re, im);
      wide.emplace_back(re, im);
      want.push_back(static_cast<double>(
          std::hypot(static_cast<long double>(re), static_cast<long double>(im))));
    }
  }
  const auto length = static_cast<std::int64_t>(want.size());
  std::vector<float> rounded(want.begin(), want.end());
  const Array want_narrow = Array::from<float>({length}, rounded);
  EXPECT_TRUE(kit::near(run(Array::from<std::complex<float>>({length}, narrow), context),
                        kit::values(want_narrow), 2 * kit::epsilon(Dtype::f32)));
  EXPECT_TRUE(kit::near(run(Array::from<std::complex<double>>({length}, wide), context), want,
                        4 * kit::epsilon(Dtype::f64)));
  const Array large = Array::from<std::complex<double>>(
      {2}, std::vector<std::complex<double>>{{3e300, 4e300}, {3e-300, 4e-300}});
  EXPECT_TRUE(kit::near(run(large, context), std::vector<double>{5e300, 5e-300},
                        4 * kit::epsilon(Dtype::f64)));
}

DEVICE_TEST(AbsTest, TakesEveryLayoutAndSize) {
  const Context context = kit::context(device());
  for (const Dims& shape :
       {Dims{}, Dims{0}, Dims{1}, Dims{3}, Dims{1023}, Dims{1025}, Dims{5, 7, 31}}) {
    const Array x = kit::random(shape, Dtype::c64, 7);
    std::vector<double> want;
    for (std::complex<double> value : kit::complex_values(x))
      want.push_back(std::abs(value));
    for (kit::Layout layout : kit::layouts()) {
      EXPECT_TRUE(
          kit::near(run(kit::with_layout(x, layout), context), want, 2 * kit::epsilon(Dtype::f32)));
    }
  }
}

}  // namespace
}  // namespace forebay
