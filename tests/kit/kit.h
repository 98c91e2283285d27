#pragma once

#include <gtest/gtest.h>

#include <complex>
#include <functional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include <forebay/array/array.h>
#include <forebay/array/error.h>

namespace forebay {
void PrintTo(Dtype dtype, std::ostream* out);
void PrintTo(const Device& device, std::ostream* out);
void PrintTo(const Dims& dims, std::ostream* out);
}  // namespace forebay

/// What tests of every layer share: arrays to start from, other memory layouts of the same
/// values, comparison.
namespace forebay::kit {

/// cpu and cuda.
std::vector<Device> devices();
/// Why `device` cannot be used here; empty when it can.
std::string absence(Device device);

/// A suite whose cases run on each device: `class ClipTest : public kit::DeviceTest {};` and
/// `DEVICE_TEST(ClipTest, Clips) { ... device() ... }` give ClipTest.Clips/cpu and
/// ClipTest.Clips/cuda, skipped where the device is absent. (The templates behind GoogleTest's
/// value parameters take a second a suite to compile.)
class DeviceTest : public testing::Test {
 public:
  using Factory = DeviceTest* (*)();
  static bool add(const char* suite, const char* name, const char* file, int line, Factory make);

 protected:
  Device device() const { return device_; }
  /// Skips the case when its device is absent.
  bool skips() const;

 private:
  Device device_ = Device::cpu();
};

/// A context on `device` with a stream of its own.
Context context(Device device);

/// Uniform host values in [low, high] (integers: whole ones, clamped to the dtype), the same for
/// the same seed.
Array random(const Dims& shape, Dtype dtype, std::uint64_t seed, double low = -4, double high = 4);
/// A dense host array with `value(i)` at the i-th element in row-major order, cast as C++ casts.
Array generate(const Dims& shape, Dtype dtype, const std::function<double(std::int64_t)>& value);

/// How the same values can lie in memory.
enum class Layout : std::uint8_t { dense, transposed, sliced, reversed, offset };
std::vector<Layout> layouts();
/// Host array with the values of the dense host array `x` laid out differently: axes stored in
/// reverse order, every second element of a larger array, negative strides, or one element past an
/// aligned address.
Array with_layout(const Array& x, Layout layout);

/// `x` on the context's device, with the same strides (the whole memory that they span is copied).
Array to_device(const Array& x, const Context& context);
/// A dense host copy of `x`, of any strides, after synchronising.
Array to_host(const Array& x, const Context& context);

/// Element `i` in row-major order of a host view, as double (u64 and i64 above 2^53 round).
double value(const ArrayView& host, std::int64_t i);
std::complex<double> complex_value(const ArrayView& host, std::int64_t i);
std::vector<double> values(const Array& host);
std::vector<std::complex<double>> complex_values(const Array& host);

/// Compares with |got - want| <= absolute + relative * |want|; NaN equals NaN, equal
/// infinities match.
testing::AssertionResult near(const Array& host, std::span<const double> want, double relative,
                              double absolute = 0);
testing::AssertionResult near(const Array& host, std::span<const std::complex<double>> want,
                              double relative, double absolute = 0);
/// Compares dtype, shape and every bit (any NaN equals any NaN).
testing::AssertionResult same_bits(const Array& a, const Array& b);

/// Half a unit in the last place at 1: 2^-24 for f32. 0 for integers.
double epsilon(Dtype dtype);

/// Runs `action` and returns what it threw; fails the test when it threw nothing or something
/// else than Error.
struct Caught {
  ErrorKind kind = ErrorKind::invalid;
  std::string text = "(nothing was thrown)";
};
Caught caught(const std::function<void()>& action);

/// A folder of its own under the test's temporary one, removed at the end of the program.
std::string temporary_folder();

}  // namespace forebay::kit

#define SKIP_WITHOUT(device)                                                       \
  if (const std::string reason = ::forebay::kit::absence(device); !reason.empty()) \
  GTEST_SKIP() << reason

#define DEVICE_TEST(suite, name)                                                             \
  class suite##_##name final : public suite {                                                \
    void SetUp() override {                                                                  \
      if (!skips()) suite::SetUp();                                                          \
    }                                                                                        \
    void TestBody() override;                                                                \
    static const bool added_;                                                                \
  };                                                                                         \
  const bool suite##_##name::added_ =                                                        \
      ::forebay::kit::DeviceTest::add(#suite, #name, __FILE__, __LINE__,                     \
                                      []() -> ::forebay::kit::DeviceTest* {                  \
                                        return new suite##_##name;                           \
                                      });                                                    \
  void suite##_##name::TestBody()

/// The statement throws an Error of this kind with exactly this text.
#define EXPECT_ERROR(statement, error_kind, error_text)                                            \
  do {                                                                                             \
    const auto caught_ = ::forebay::kit::caught([&] { statement; });                               \
    EXPECT_EQ(caught_.text, error_text);                                                           \
    EXPECT_EQ(static_cast<int>(caught_.kind), static_cast<int>(::forebay::ErrorKind::error_kind)); \
  } while (false)
