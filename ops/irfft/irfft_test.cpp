#include <forebay/ops/irfft/irfft.h>

#include <forebay/ops/fft/oracle_test.h>
#include <forebay/ops/rfft/rfft.h>

namespace forebay {
namespace {

using dft::Kind;
using C64 = std::complex<float>;

class IrfftTest : public kit::DeviceTest {};

DEVICE_TEST(IrfftTest, MatchesTheDefinition) {
  for (const Dtype dtype : {Dtype::c64, Dtype::c128}) {
    oracle::check_family(Kind::irfft, irfft, dtype, kit::context(device()));
  }
}

DEVICE_TEST(IrfftTest, TakesEveryDtype) {
  oracle::check_dtypes(Kind::irfft, irfft, kit::context(device()));
}

/// No real signal has them, so they change no bit of the result.
DEVICE_TEST(IrfftTest, ImaginaryPartsOfTheFirstAndMiddleFrequencyAreIgnored) {
  const Context context = kit::context(device());
  for (const std::int64_t axis : {0, 1, 2}) {
    for (const std::int64_t n : {8, 9}) {  // 9 has no middle: its frequency 4 counts in full
      const Array x = kit::random({5, 5, 5}, Dtype::c64, 1);
      Array clean = kit::to_host(x, kit::context(Device::cpu()));
      for (std::int64_t i = 0; i < clean.count(); ++i) {
        const std::int64_t k = axis == 0 ? i / 25 : axis == 1 ? i / 5 % 5 : i % 5;
        if (k == 0 || 2 * k == n) clean.as<C64>()[i].imag(0);
      }
      const Irfft settings{.n = n, .axis = axis};
      EXPECT_TRUE(kit::same_bits(oracle::run(irfft, x, settings, context),
                                 oracle::run(irfft, clean, settings, context)));
    }
  }
}

/// The default length is even, so an odd one must be given.
DEVICE_TEST(IrfftTest, OddLengthsNeedN) {
  const Context context = kit::context(device());
  const Array half =
      Array::from({3}, std::vector<C64>{{10, 0}, {-2.5F, 3.4409548F}, {-2.5F, 0.81229924F}});
  EXPECT_TRUE(kit::near(oracle::run(irfft, half, {}, context),
                        std::vector<double>{0.625, 1.4045226, 3.125, 4.8454774}, 0, 1e-6));
  EXPECT_TRUE(kit::near(oracle::run(irfft, half, {.n = 5}, context),
                        std::vector<double>{0, 1, 2, 3, 4}, 0, 1e-6));
}

DEVICE_TEST(IrfftTest, InvertsRfftWithEveryNorm) {
  const Context context = kit::context(device());
  for (const FftNorm norm : oracle::kNorms) {
    for (const std::int64_t n : {1, 2, 9, 100}) {
      const Array x = kit::random({4, n, 3}, Dtype::f64, 1);
      const Array spectrum = rfft(kit::to_device(x, context), {.axis = 1, .norm = norm}, context);
      const Array back =
          kit::to_host(irfft(spectrum, {.n = n, .axis = 1, .norm = norm}, context), context);
      EXPECT_EQ(back.shape(), x.shape());
      EXPECT_TRUE(oracle::close(back, kit::complex_values(x), n));
    }
  }
}

TEST(Irfft, Errors) {
  oracle::check_errors("irfft", irfft);
  EXPECT_ERROR(irfft(kit::random({3, 1}, Dtype::c64, 1), {}, kit::context(Device::cpu())), invalid,
               "irfft: `n` is 0 by default, since axis -1 of `x` with shape (3, 1) has extent 1; "
               "it must be at least 1. Give "
               "`n`.");
}

}  // namespace
}  // namespace forebay
