#include <forebay/ops/ifft/ifft.h>

#include <forebay/ops/fft/fft.h>
#include <forebay/ops/fft/oracle_test.h>

namespace forebay {
namespace {

using dft::Kind;

class IfftTest : public kit::DeviceTest {};

DEVICE_TEST(IfftTest, MatchesTheDefinition) {
  for (const Dtype dtype : {Dtype::c64, Dtype::c128, Dtype::f32, Dtype::f64}) {
    oracle::check_family(Kind::ifft, ifft, dtype, kit::context(device()));
  }
}

DEVICE_TEST(IfftTest, TakesEveryDtype) {
  oracle::check_dtypes(Kind::ifft, ifft, kit::context(device()));
}

DEVICE_TEST(IfftTest, InvertsFftWithEveryNorm) {
  const Context context = kit::context(device());
  for (const FftNorm norm : oracle::kNorms) {
    const Array x = kit::random({4, 100, 3}, Dtype::c64, 1);
    const Array spectrum = fft(kit::to_device(x, context), {.axis = 1, .norm = norm}, context);
    const Array back = kit::to_host(ifft(spectrum, {.axis = 1, .norm = norm}, context), context);
    EXPECT_TRUE(oracle::close(back, kit::complex_values(x), 100));
  }
}

TEST(Ifft, Errors) {
  oracle::check_errors("ifft", ifft);
  EXPECT_ERROR(ifft(kit::random({0}, Dtype::c64, 1), {}, kit::context(Device::cpu())), invalid,
               "ifft: `n` is 0 by default, since axis -1 of `x` with shape (0,) has extent 0; it "
               "must be at least 1. Give `n`.");
}

}  // namespace
}  // namespace forebay
