#include <forebay/ops/rfft/rfft.h>

#include <forebay/ops/fft/oracle_test.h>

namespace forebay {
namespace {

using dft::Kind;

class RfftTest : public kit::DeviceTest {};

DEVICE_TEST(RfftTest, MatchesTheDefinition) {
  for (const Dtype dtype : {Dtype::f32, Dtype::f64, Dtype::f16}) {
    oracle::check_family(Kind::rfft, rfft, dtype, kit::context(device()));
  }
}

DEVICE_TEST(RfftTest, TakesEveryRealDtype) {
  oracle::check_dtypes(Kind::rfft, rfft, kit::context(device()));
}

/// Real data one element past an aligned address is no case of its own for the user, though it is
/// for cuFFT.
DEVICE_TEST(RfftTest, RowsOfAnyAlignment) {
  const Context context = kit::context(device());
  for (const Dtype dtype : {Dtype::f32, Dtype::f64}) {
    const Array x = kit::random({3, 35}, dtype, 1);
    for (std::int64_t row = 0; row < 3; ++row) {
      oracle::check(Kind::rfft, rfft, x.slice(0, row, row + 1), {.norm = FftNorm::ortho}, context);
    }
    oracle::check(Kind::rfft, rfft, kit::random({35}, dtype, 2).slice(0, 1, 35), {.n = 20},
                  context);
  }
}

/// cuFFT takes f16 only at powers of two; ours goes through f32 at any length.
DEVICE_TEST(RfftTest, HalfPrecisionAtAnyLength) {
  oracle::check(Kind::rfft, rfft, kit::random({1, 1, 20, 20, 10}, Dtype::f16, 1), {},
                kit::context(device()));
  oracle::check(Kind::rfft, rfft, kit::random({1, 1, 20, 20, 10}, Dtype::bf16, 1), {.axis = 2},
                kit::context(device()));
}

TEST(Rfft, Errors) {
  oracle::check_errors("rfft", rfft);
  EXPECT_ERROR(rfft(kit::random({4}, Dtype::c64, 1), {}, kit::context(Device::cpu())), unsupported,
               "rfft: `x` has dtype c64; supported: bool, integers, f16, bf16, f32, f64. Add an "
               "`abs` stage before it.");
}

}  // namespace
}  // namespace forebay
