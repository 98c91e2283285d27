#include <forebay/ops/fft/fft.h>

#include <thread>

#include <forebay/ops/fft/oracle_test.h>
#include <forebay/ops/ifft/ifft.h>
#include <forebay/ops/registry.h>

namespace forebay {
namespace {

using dft::Kind;

class FftTest : public kit::DeviceTest {};

DEVICE_TEST(FftTest, MatchesTheDefinition) {
  for (const Dtype dtype : {Dtype::c64, Dtype::c128, Dtype::f32, Dtype::f64}) {
    oracle::check_family(Kind::fft, fft, dtype, kit::context(device()));
  }
}

DEVICE_TEST(FftTest, TakesEveryDtype) {
  oracle::check_dtypes(Kind::fft, fft, kit::context(device()));
}

/// What no transform of f32 would keep.
DEVICE_TEST(FftTest, ThirtyTwoBitIntegersKeepTheirBits) {
  const Array x = Array::from({2}, std::vector<std::int32_t>{(1 << 24) + 1, 0});
  const Array got = oracle::run(fft, x, {}, kit::context(device()));
  EXPECT_TRUE(kit::near(got, std::vector<double>{16777217, 16777217}, 0));
}

/// Rows of real input agree with the same rows as complex numbers, and are Hermitian to the last
/// bit.
DEVICE_TEST(FftTest, RealRowsAreHermitian) {
  const Context context = kit::context(device());
  for (const std::int64_t n : {6, 7, 1000}) {
    const Array x = kit::random({3, n}, Dtype::f32, 1);
    const auto got = kit::complex_values(oracle::run(fft, x, {.norm = FftNorm::ortho}, context));
    for (std::size_t row = 0; row < 3; ++row) {
      const auto* const values = &got[row * static_cast<std::size_t>(n)];
      EXPECT_EQ(values[0].imag(), 0);
      for (std::int64_t k = 1; k < n; ++k)
        EXPECT_EQ(values[k], std::conj(values[n - k])) << n << " " << k;
    }
  }
}

DEVICE_TEST(FftTest, NanAndInfinityStayInTheirRow) {
  Array x = kit::generate({3, 8}, Dtype::f32, [](std::int64_t) { return 1; });
  x.as<float>()[9] = std::numeric_limits<float>::quiet_NaN();
  const auto got = kit::complex_values(oracle::run(fft, x, {}, kit::context(device())));
  for (std::size_t k = 0; k < 8; ++k) {
    EXPECT_EQ(got[k], (k == 0 ? std::complex<double>(8) : 0)) << k;
    EXPECT_TRUE(std::isnan(std::norm(got[8 + k]))) << k;
    EXPECT_EQ(got[16 + k], (k == 0 ? std::complex<double>(8) : 0)) << k;
  }
}

DEVICE_TEST(FftTest, LongRowsComeBack) {
  const Context context = kit::context(device());
  for (const std::int64_t n : {std::int64_t{1} << 18, std::int64_t{200000}, std::int64_t{131071}}) {
    const Array x = kit::random({1, n}, Dtype::c64, 1);
    const Array spectrum = fft(kit::to_device(x, context), {}, context);
    const Array back = kit::to_host(ifft(spectrum, {}, context), context);
    EXPECT_TRUE(oracle::close(back, kit::complex_values(x), n));
  }
}

/// More lengths than any cache of plans holds.
DEVICE_TEST(FftTest, HundredsOfLengthsInTurn) {
  const Context context = kit::context(device());
  for (int round = 0; round < 2; ++round) {
    for (std::int64_t n = 1; n <= 150; ++n)
      oracle::check(Kind::fft, fft, kit::random({2, n}, Dtype::f32, 1), {}, context);
  }
}

/// Streams share the libraries' caches of plans, and must not share a plan.
DEVICE_TEST(FftTest, StreamsDoNotDisturbEachOther) {
  std::vector<std::thread> threads;
  std::vector<int> wrong(4);
  for (std::size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      const Context context = kit::context(device());
      for (std::int64_t n = 20; n < 60; ++n) {
        const Array x = kit::random({200, n}, Dtype::f32, t);
        const Array got = kit::to_host(fft(kit::to_device(x, context), {}, context), context);
        const auto head = kit::to_host(got.slice(0, 199, 200), kit::context(Device::cpu()));
        const auto last = oracle::transform(
            Kind::fft, kit::to_host(x.slice(0, 199, 200), kit::context(Device::cpu())), {});
        if (!oracle::close(head, last, n)) ++wrong[t];
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4));
}

TEST(Fft, TheSameBitsAtEveryThreadCount) {
  const Array x = kit::random({5000, 60}, Dtype::f32, 1);
  const Array cube = kit::random({3, 60, 1700}, Dtype::c64, 2);
  const Context one = Context::create(Device::cpu(), 1);
  const Context four = Context::create(Device::cpu(), 4);
  EXPECT_TRUE(
      kit::same_bits(kit::to_host(fft(x, {}, one), one), kit::to_host(fft(x, {}, four), four)));
  EXPECT_TRUE(kit::same_bits(kit::to_host(fft(cube, {.axis = 1}, one), one),
                             kit::to_host(fft(cube, {.axis = 1}, four), four)));
}

TEST(Fft, Errors) {
  oracle::check_errors("fft", fft);
  const Context context = kit::context(Device::cpu());
  EXPECT_ERROR(fft(kit::random({3, 0}, Dtype::f32, 1), {}, context), invalid,
               "fft: `n` is 0 by default, since axis -1 of `x` with shape (3, 0) has extent 0; it "
               "must be at least 1. Give `n`.");
}

TEST(Fft, SaysWhenItMixesSamples) {
  const OpDef& def = find_op("fft").def;
  const ArraySpec x{Dtype::f32, {2, 3}};
  for (const auto& [axis, mixes] : {std::pair{0, true}, {1, false}, {-1, false}, {-2, true}}) {
    const Fft settings{.axis = axis};
    EXPECT_EQ(def.mixes_samples(&settings, {&x, 1}), mixes) << axis;
  }
}

}  // namespace
}  // namespace forebay
