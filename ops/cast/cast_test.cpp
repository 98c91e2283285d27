#include "kit/kit.h"
#include "kit/oracle.h"

#include <forebay/ops/cast/cast.h>

namespace forebay {
namespace {

class CastTest : public testing::TestWithParam<Device> {};
INSTANTIATE_TEST_SUITE_P(Devices, CastTest, testing::ValuesIn(kit::devices()), kit::device_name);

Array run(const Array& host, const Cast& settings, const Context& context) {
  return kit::to_host(cast(kit::to_device(host, context), settings, context), context);
}

TEST_P(CastTest, SaturatesEveryRealToEveryReal) {
  SKIP_WITHOUT(GetParam());
  const Context context = kit::context(GetParam());
  for (Dtype from : kAllDtypes) {
    if (is_complex(from)) continue;
    dispatch(kit::RealsAndBool{}, from, "test", "from", [&]<class From>(Type<From>) {
      const auto values = kit::edge_values<From>();
      const Array x = kit::array_of(values);
      for (Dtype to : kAllDtypes) {
        if (is_complex(to)) continue;
        dispatch(kit::RealsAndBool{}, to, "test", "to", [&]<class To>(Type<To>) {
          std::vector<To> want;
          for (From value : values)
            want.push_back(kit::saturated<To>(kit::exact(value)));
          EXPECT_TRUE(kit::same_bits(run(x, {.dtype = to}, context), kit::array_of(want)))
              << name_of(from) << " to " << name_of(to);
        });
      }
    });
  }
}

TEST_P(CastTest, WidensEveryHalfExactlyAndRoundsItBack) {
  SKIP_WITHOUT(GetParam());
  const Context context = kit::context(GetParam());
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

TEST_P(CastTest, WrapsIntegersModuloTwoToTheBits) {
  SKIP_WITHOUT(GetParam());
  const Context context = kit::context(GetParam());
  for (Dtype from : kAllDtypes) {
    if (!is_integer(from)) continue;
    dispatch(kit::Integers{}, from, "test", "from", [&]<class From>(Type<From>) {
      const auto values = kit::edge_values<From>();
      for (Dtype to : kAllDtypes) {
        if (!is_integer(to)) continue;
        dispatch(kit::Integers{}, to, "test", "to", [&]<class To>(Type<To>) {
          std::vector<To> want;
          const __int128 modulus = static_cast<__int128>(1) << (8 * sizeof(To));
          for (From value : values) {
            __int128 rest = ((static_cast<__int128>(value) % modulus) + modulus) % modulus;
            if (std::is_signed_v<To> && rest >= modulus / 2) rest -= modulus;
            want.push_back(static_cast<To>(rest));
          }
          const Array got =
              run(kit::array_of(values), {.dtype = to, .mode = expr::CastMode::wrap}, context);
          EXPECT_TRUE(kit::same_bits(got, kit::array_of(want)))
              << name_of(from) << " to " << name_of(to);
        });
      }
    });
  }
}

TEST_P(CastTest, GivesRealsAnImaginaryPartOfZeroAndConvertsComplexByParts) {
  SKIP_WITHOUT(GetParam());
  const Context context = kit::context(GetParam());
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

TEST_P(CastTest, TakesEveryLayoutAndSize) {
  SKIP_WITHOUT(GetParam());
  const Context context = kit::context(GetParam());
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
