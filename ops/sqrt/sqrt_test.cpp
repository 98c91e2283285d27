#include "kit/kit.h"
#include "kit/oracle.h"

#include <forebay/ops/sqrt/sqrt.h>

namespace forebay {
namespace {

class SqrtTest : public kit::DeviceTest {};

Array run(const Array& host, const Sqrt& settings, const Context& context) {
  return kit::to_host(sqrt(kit::to_device(host, context), settings, context), context);
}

/// IEEE's root of `x` in Work: a long double's, rounded again. No true root lies halfway
/// between two numbers of Work; where the first rounding has put it there, the side that it
/// came from decides.
template <class Work>
Work root(Work x) {
  const long double exact = x;
  long double wide = std::sqrt(exact);
  if (std::abs(wide - kit::round_to<Work>(wide)) * 2 == kit::ulp(kit::format_of<Work>(), wide))
    wide = std::nextafter(wide, std::fma(wide, wide, -exact) > 0 ? 0.0L : HUGE_VALL);
  return kit::round_to<Work>(wide);
}

DEVICE_TEST(SqrtTest, IsIeeesRootOfTheConvertedInputRoundedOnce) {
  const Context context = kit::context(device());
  for (Dtype dtype : kAllDtypes) {
    if (is_complex(dtype)) continue;
    const Array x = kit::edge_values(dtype);
    for (Dtype result : {Dtype::f16, Dtype::bf16, Dtype::f32, Dtype::f64}) {
      const bool in_f64 = dtype == Dtype::f64 || result == Dtype::f64;
      std::vector<long double> want = kit::exact(x);
      for (long double& value : want)
        value = in_f64 ? root(kit::round_to<double>(value)) : root(kit::round_to<float>(value));
      EXPECT_TRUE(kit::same_bits(run(x, {.dtype = result}, context), kit::saturated(result, want)))
          << name_of(dtype) << " to " << name_of(result);
    }
  }
}

DEVICE_TEST(SqrtTest, IsExactEverywhereInF32) {
  // Every exponent, subnormals too, thousands of significands.
  const Array x = kit::generate({1 << 18}, Dtype::f32, [](std::int64_t i) {
    const double significand = 1 + static_cast<double>(i * 2654435761 % 1048576) / 1048576;
    return std::ldexp(significand, static_cast<int>(i % 277) - 149);
  });
  std::vector<float> want;
  for (std::int64_t i = 0; i < x.count(); ++i)
    want.push_back(root(x.as<float>()[i]));
  EXPECT_TRUE(kit::same_bits(run(x, {}, kit::context(device())), kit::array_of(want)));
}

DEVICE_TEST(SqrtTest, KeepsTheSignOfZeroAndHasNoRootOfNegativeNumbers) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN(), kInfinity = HUGE_VAL;
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16, Dtype::f32, Dtype::f64}) {
    const std::vector<double> in = {-0.0, 0.0, -1.0, -kInfinity, kInfinity, kNaN, 6.25};
    const std::vector<double> out = {-0.0, 0.0, kNaN, kNaN, kInfinity, kNaN, 2.5};
    const auto array = [&](const std::vector<double>& values) {
      return kit::generate({7}, dtype, [&](auto i) { return values[static_cast<std::size_t>(i)]; });
    };
    EXPECT_TRUE(kit::same_bits(run(array(in), {}, kit::context(device())), array(out)))
        << name_of(dtype);
  }
}

DEVICE_TEST(SqrtTest, ChoosesTheResultsDtypeAndTakesEveryLayoutAndSize) {
  const Context context = kit::context(device());
  EXPECT_EQ(run(kit::random({3}, Dtype::u8, 1), {}, context).dtype(), Dtype::f32);
  EXPECT_EQ(run(kit::random({3}, Dtype::bf16, 1), {}, context).dtype(), Dtype::bf16);
  EXPECT_EQ(run(kit::random({3}, Dtype::f64, 1), {}, context).dtype(), Dtype::f64);
  for (const Dims& shape :
       {Dims{}, Dims{0}, Dims{1}, Dims{3}, Dims{1023}, Dims{1025}, Dims{5, 7, 31}}) {
    const Array x = kit::random(shape, Dtype::f32, 7, 0, 4);
    const Array want = kit::generate(
        shape, Dtype::f32, [&](std::int64_t i) { return double{root(x.as<float>()[i])}; });
    for (kit::Layout layout : kit::layouts())
      EXPECT_TRUE(kit::same_bits(run(kit::with_layout(x, layout), {}, context), want));
  }
}

TEST(SqrtErrors, SayWhatIsAllowed) {
  const Context context = kit::context(Device::cpu());
  EXPECT_ERROR(sqrt(kit::random({2}, Dtype::c64, 1), {}, context), unsupported,
               "sqrt: `x` has dtype c64; supported: bool, integers, f16, bf16, f32, f64. Add an "
               "`abs` stage before it.");
  EXPECT_ERROR(sqrt(kit::random({2}, Dtype::u8, 1), {.dtype = Dtype::u8}, context), invalid,
               "sqrt: `dtype` is u8; it must be f16, bf16, f32 or f64.");
}

}  // namespace
}  // namespace forebay
