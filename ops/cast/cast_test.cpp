#include "kit/kit.h"
#include "kit/oracle.h"

#include <forebay/ops/cast/cast.h>

namespace forebay {
namespace {

class CastTest : public kit::DeviceTest {};

Array run(const Array& host, const Cast& settings, const Context& context) {
  return kit::to_host(cast(kit::to_device(host, context), settings, context), context);
}

DEVICE_TEST(CastTest, SaturatesEveryRealToEveryReal) {
  const Context context = kit::context(device());
  for (Dtype from : kAllDtypes) {
    if (is_complex(from)) continue;
    const Array x = kit::edge_values(from);
    for (Dtype to : kAllDtypes) {
      if (is_complex(to)) continue;
      EXPECT_TRUE(
          kit::same_bits(run(x, {.dtype = to}, context), kit::saturated(to, kit::exact(x))))
          << name_of(from) << " to " << name_of(to);
    }
  }
}

DEVICE_TEST(CastTest, WidensEveryHalfExactlyAndRoundsItBack) {
  const Context context = kit::context(device());
  std::vector<Half> halves(65536);
  std::vector<BFloat16> bfloats(65536);
  for (unsigned bits = 0; bits < 65536; ++bits)
    halves[bits].bits = bfloats[bits].bits = static_cast<std::uint16_t>(bits);
  for (const Array& x : {kit::array_of(halves), kit::array_of(bfloats)}) {
    for (Dtype wide : {Dtype::f32, Dtype::f64}) {
      const Array widened = run(x, {.dtype = wide}, context);
      EXPECT_TRUE(kit::near(widened, kit::values(x), 0));
      EXPECT_TRUE(kit::same_bits(run(widened, {.dtype = x.dtype()}, context), x));
    }
  }
}

DEVICE_TEST(CastTest, WrapsIntegersModuloTwoToTheBits) {
  const Context context = kit::context(device());
  for (Dtype from : kAllDtypes) {
    if (!is_integer(from)) continue;
    const Array x = kit::edge_values(from);
    for (Dtype to : kAllDtypes) {
      if (!is_integer(to)) continue;
      std::vector<long double> want = kit::exact(x);  // 64 bits fit a significand
      const long double modulus = std::ldexp(1.0L, 8 * static_cast<int>(size_of(to)));
      for (long double& value : want) {
        value -= modulus * std::floor(value / modulus);
        if (is_signed(to) && value >= modulus / 2) value -= modulus;
      }
      const Array got = run(x, {.dtype = to, .mode = expr::CastMode::wrap}, context);
      EXPECT_TRUE(kit::same_bits(got, kit::saturated(to, want)))
          << name_of(from) << " to " << name_of(to);
    }
  }
}

DEVICE_TEST(CastTest, GivesRealsAnImaginaryPartOfZeroAndConvertsComplexByParts) {
  const Context context = kit::context(device());
  const Array reals = kit::random({1025}, Dtype::f32, 3);
  const auto real_values = kit::values(reals);
  const std::vector<std::complex<double>> want(real_values.begin(), real_values.end());
  for (Dtype to : {Dtype::c64, Dtype::c128})
    EXPECT_TRUE(kit::near(run(reals, {.dtype = to}, context), want, 0));

  const Array pairs = kit::random({1025}, Dtype::c64, 4);
  EXPECT_TRUE(
      kit::near(run(pairs, {.dtype = Dtype::c128}, context), kit::complex_values(pairs), 0));
  const Array wide = kit::random({1025}, Dtype::c128, 5);
  EXPECT_TRUE(kit::near(run(wide, {.dtype = Dtype::c64}, context), kit::complex_values(wide),
                        2 * kit::epsilon(Dtype::c64)));
  const Array some = Array::from<std::complex<float>>(
      {4}, std::vector<std::complex<float>>{{0, 0}, {1, 0}, {0, -1}, {0, NAN}});
  EXPECT_EQ(kit::values(run(some, {.dtype = Dtype::boolean}, context)),
            (std::vector<double>{0, 1, 1, 1}));
}

DEVICE_TEST(CastTest, TakesEveryLayoutAndSize) {
  const Context context = kit::context(device());
  for (const Dims& shape :
       {Dims{}, Dims{0}, Dims{1}, Dims{3}, Dims{1023}, Dims{1025}, Dims{5, 7, 31}, Dims{2, 0, 3}}) {
    const Array x = kit::random(shape, Dtype::u8, 7, 0, 255);
    for (kit::Layout layout : kit::layouts()) {
      const Array got = run(kit::with_layout(x, layout), {.dtype = Dtype::f32}, context);
      EXPECT_EQ(got.shape(), shape);
      EXPECT_TRUE(kit::near(got, kit::values(x), 0));
    }
  }
}

TEST(CastErrors, SayWhatToDo) {
  const Context context = kit::context(Device::cpu());
  EXPECT_ERROR(cast(kit::random({2}, Dtype::c64, 1), {.dtype = Dtype::f32}, context), unsupported,
               "cast: from c64 to f32 would drop the imaginary part. Use `abs`, or the real or "
               "imaginary part.");
  EXPECT_ERROR(cast(kit::random({2}, Dtype::f32, 1),
                    {.dtype = Dtype::u8, .mode = expr::CastMode::wrap}, context),
               unsupported,
               "cast: mode `wrap` from f32 to u8; it is for integers and bool. Use `saturate`.");
}

}  // namespace
}  // namespace forebay
