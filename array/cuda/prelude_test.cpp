// The device functions of prelude.cu against exact host oracles that share no code with them. The
// kernels are also compiled for every architecture where there is no GPU.

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include <fmt/core.h>

#include <forebay/array/cuda/kernel.h>
#include <forebay/array/dispatch.h>

#include "kit/kit.h"

namespace forebay::cuda {
namespace {

using Sources = Types<bool, std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t, std::int8_t,
                      std::int16_t, std::int32_t, std::int64_t, Half, BFloat16, float, double>;
using Integers = Types<bool, std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t, std::int8_t,
                       std::int16_t, std::int32_t, std::int64_t>;
constexpr Dtype kReals[] = {Dtype::boolean, Dtype::u8,  Dtype::u16, Dtype::u32, Dtype::u64,
                            Dtype::i8,      Dtype::i16, Dtype::i32, Dtype::i64, Dtype::f16,
                            Dtype::bf16,    Dtype::f32, Dtype::f64};

template <class T>
constexpr bool is_16bit_float = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

// ---- Kernels.

std::string kernel_name(const char* what, Dtype dtype) {
  return fmt::format("{}_{}", what, name_of(dtype));
}

/// One input to every output type, through `cast`: saturate_cast to all dtypes, or wrap_cast to the
/// integers.
KernelSource casts(const char* cast, Dtype from, std::span<const Dtype> to) {
  std::string parameters, body;
  for (Dtype dtype : to) {
    parameters += fmt::format(", {0}* to_{0}", name_of(dtype));
    body += fmt::format("  to_{0}[i] = {1}<{0}>(in[i]);\n", name_of(dtype), cast);
  }
  const std::string name = kernel_name(cast, from);
  return {name,
          fmt::format("extern \"C\" __global__ void {}(const {}* in, i64 n{}) {{\n"
                      "  const i64 i = grid_thread();\n  if (i >= n) return;\n{}}}\n",
                      name, name_of(from), parameters, body),
          {}};
}

KernelSource extremes(Dtype dtype) {
  const std::string name = kernel_name("extremes", dtype);
  return {
      name,
      fmt::format(
          "extern \"C\" __global__ void {0}(const {1}* x, const {1}* y, {1}* least, {1}* greatest, "
          "i64 n) {{\n"
          "  for (i64 i = grid_thread(); i < n; i += grid_threads()) {{\n"
          "    least[i] = minimum(x[i], y[i]);\n    greatest[i] = maximum(x[i], y[i]);\n  }}\n}}\n",
          name, name_of(dtype)),
      {}};
}

constexpr int kComplexResults = 9;
KernelSource complex_arithmetic(Dtype dtype) {
  const std::string name = kernel_name("complex", dtype), type(name_of(dtype));
  return {name,
          "extern \"C\" __global__ void " + name + "(const " + type + "* in_x, const " + type +
              "* in_y, " + type +
              "* out, i64 n) {\n"
              "  const i64 i = grid_thread();\n  if (i >= n) return;\n  const " +
              type + " x = in_x[i], y = in_y[i];\n  " + type + "* o = out + i * 9;\n" +
              "  o[0] = x + y;\n  o[1] = x - y;\n  o[2] = x * y;\n  o[3] = x / y;\n  o[4] = -x;\n  "
              "o[5] = conj(x);\n"
              "  o[6] = x * y.re;\n  o[7] = {abs(x), norm(x)};\n"
              "  o[8] = {decltype(x.re)(x == y), decltype(x.re)(x != y) + 2 * "
              "saturate_cast<bool>(x)};\n}\n",
          {}};
}

/// z -> (f32 z, f64 z): the casts between complex types.
KernelSource complex_casts(Dtype dtype) {
  const std::string name = kernel_name("complex_casts", dtype);
  return {
      name,
      fmt::format(
          "extern \"C\" __global__ void {}(const {}* in, c64* narrow, c128* wide, i64 n) {{\n"
          "  const i64 i = grid_thread();\n  if (i >= n) return;\n"
          "  narrow[i] = saturate_cast<c64>(in[i]);\n  wide[i] = saturate_cast<c128>(in[i]);\n}}\n",
          name, name_of(dtype)),
      {}};
}

/// Composes x -> a x + b modulo 2^32 over all threads: associative, not commutative, so that the
/// order shows.
const KernelSource kReduce{"reduce",
                           R"(struct Affine {
  u32 a, b;
};
extern "C" __global__ void reduce(const Affine* in, Affine* of_warp, Affine* of_block, f64* sum) {
  __shared__ Affine shared[32];
  __shared__ f64 shared_sum[32];
  const auto then = [](Affine f, Affine g) { return Affine{g.a * f.a, g.a * f.b + g.b}; };
  const i64 i = grid_thread();
  of_warp[i] = warp_reduce(in[i], then);
  of_block[i] = block_reduce(in[i], then, shared);
  of_block[i] = block_reduce(in[i], then, shared);  // again at once: `shared` is safe to use again
  sum[i] = block_reduce(f64(in[i].a), [](f64 x, f64 y) { return x + y; }, shared_sum);
}
)",
                           {}};

std::vector<Dtype> integers() {
  std::vector<Dtype> result;
  for (Dtype dtype : kReals) {
    if (!is_float(dtype)) result.push_back(dtype);
  }
  return result;
}

std::vector<KernelSource> all_kernels() {
  std::vector<KernelSource> all{kReduce};
  for (Dtype dtype : kReals) {
    all.push_back(casts("saturate_cast", dtype, kReals));
    if (!is_float(dtype)) all.push_back(casts("wrap_cast", dtype, integers()));
    all.push_back(extremes(dtype));
  }
  for (Dtype dtype : {Dtype::c64, Dtype::c128}) {
    all.push_back(complex_arithmetic(dtype));
    all.push_back(complex_casts(dtype));
  }
  return all;
}

class PreludeTest : public testing::TestWithParam<int> {};
TEST_P(PreludeTest, CompilesEveryFunction) {
  KernelSource together{.name = "prelude_test", .text = "", .options = {}};
  for (const KernelSource& kernel : all_kernels())
    together.text += kernel.text;
  EXPECT_GT(compile_kernel(together, GetParam()).size(), 10'000U);
}
INSTANTIATE_TEST_SUITE_P(Architectures, PreludeTest, testing::Values(80, 90, 100, 120));

TEST(PreludeTest, ComplexToRealIsNotACast) {
  const auto error = kit::caught([] {
    compile_kernel(
        {"bad",
         "extern \"C\" __global__ void bad(c64* x, f32* y) { *y = saturate_cast<f32>(*x); }",
         {}},
        90);
  });
  EXPECT_NE(error.text.find("take real, imag or abs of a complex number"), std::string::npos)
      << error.text;
}

// ---- Oracles. A long double of x86 holds every value of every real dtype.
static_assert(std::numeric_limits<long double>::digits >= 64);

/// `v` rounded once, ties to even, to a 16-bit float with that many bits of mantissa and exponent.
std::uint16_t round_bits(long double v, int mantissa, int exponent) {
  const int bias = (1 << (exponent - 1)) - 1;
  const long infinity = ((1L << exponent) - 1) << mantissa;
  const int sign = std::signbit(v) ? 0x8000 : 0;
  if (std::isnan(v)) return static_cast<std::uint16_t>(sign | infinity | 1);
  if (std::isinf(v)) return static_cast<std::uint16_t>(sign | infinity);
  const int power = std::max(v == 0 ? -bias : std::ilogb(v), 1 - bias);
  const long units = std::lrint(std::ldexp(std::fabs(v), mantissa - power));
  const long bits = (static_cast<long>(power + bias - 1) << mantissa) + units;
  return static_cast<std::uint16_t>(sign | std::min(bits, infinity));
}
long double decode_bits(std::uint16_t bits, int mantissa, int exponent) {
  const int bias = (1 << (exponent - 1)) - 1, field = (bits & 0x7fff) >> mantissa,
            low = bits & ((1 << mantissa) - 1);
  const long double sign = bits & 0x8000 ? -1 : 1;
  if (field == (1 << exponent) - 1) return sign * (low ? NAN : INFINITY);
  return sign * (field == 0 ? std::ldexp(static_cast<long double>(low), 1 - bias - mantissa)
                            : std::ldexp(static_cast<long double>(low + (1 << mantissa)),
                                         field - bias - mantissa));
}

template <class T>
long double exact(T x) {
  if constexpr (std::is_same_v<T, Half>) {
    return decode_bits(x.bits, 10, 5);
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return decode_bits(x.bits, 7, 8);
  } else {
    return x;
  }
}

template <class To>
To saturated(long double v) {
  if constexpr (is_16bit_float<To>) {
    To result;
    result.bits = std::is_same_v<To, Half> ? round_bits(v, 10, 5) : round_bits(v, 7, 8);
    return result;
  } else if constexpr (std::is_same_v<To, bool>) {
    return !(v == 0);
  } else if constexpr (std::is_integral_v<To>) {
    using Limits = std::numeric_limits<To>;
    if (std::isnan(v)) return 0;
    v = std::trunc(v);
    if (v <= static_cast<long double>(Limits::min())) return Limits::min();
    if (v >= static_cast<long double>(Limits::max())) return Limits::max();
    return static_cast<To>(v);
  } else {
    return static_cast<To>(v);
  }
}

template <class T>
bool same(T a, T b) {
  const auto bits_equal = std::memcmp(&a, &b, sizeof(T)) == 0;
  return bits_equal || (std::isnan(exact(a)) && std::isnan(exact(b)));
}

/// Values at which some cast changes its mind: ends of ranges, ties, what two roundings would get
/// wrong.
std::vector<long double> edge_values() {
  std::vector<long double> values{0,
                                  0.25,
                                  0.5,
                                  0.75,
                                  0.99999999999,
                                  1,
                                  1.5,
                                  2.5,
                                  3.5,
                                  1e-4L,
                                  1e-8L,
                                  1e-40L,
                                  1e-46L,
                                  5e-324L,
                                  1e-310L,
                                  2049,
                                  2051,
                                  65504,
                                  65519.99L,
                                  65520,
                                  65536,
                                  16777217,
                                  16842753,
                                  1 + 0x1p-11L + 0x1p-40L,
                                  1 + 0x1p-8L + 0x1p-30L,
                                  0x1p40L + 0x1p32L + 1,
                                  0x1p62L + 0x1p54L + 1,
                                  3.3895314e38L,
                                  3.39e38L,
                                  3.4028235e38L,
                                  3.4028236e38L,
                                  1.7976931348623157e308L,
                                  INFINITY,
                                  NAN};
  for (int bits : {7, 8, 15, 16, 24, 31, 32, 53, 63, 64}) {
    const long double power = std::ldexp(1.0L, bits);
    for (long double near : {-1.5L, -1.0L, -0.5L, 0.0L, 0.5L, 1.0L, 1.5L})
      values.push_back(power + near);
  }
  const std::size_t count = values.size();
  for (std::size_t i = 0; i < count; ++i)
    values.push_back(-values[i]);
  return values;
}

/// Every value of the narrow types; for the others the edges, their neighbours, and random ones.
template <class T>
std::vector<T> inputs() {
  std::vector<T> result;
  std::mt19937_64 random(sizeof(T));
  if constexpr (std::is_same_v<T, bool>) {
    return {false, true};
  } else if constexpr (sizeof(T) <= 2) {
    for (int bits = 0; bits < (1 << (8 * sizeof(T))); ++bits) {
      std::memcpy(static_cast<void*>(&result.emplace_back()), &bits, sizeof(T));
    }
  } else if constexpr (std::is_integral_v<T>) {
    for (long double v : edge_values()) {
      if (!std::isnan(v)) result.push_back(saturated<T>(v));
    }
    for (int i = 0; i < 100'000; ++i) {
      result.push_back(static_cast<T>(static_cast<std::int64_t>(random()) >> (random() % 64)));
    }
  } else {
    for (long double v : edge_values()) {
      const T x = static_cast<T>(v);
      result.insert(result.end(),
                    {x, std::nextafter(x, T(-INFINITY)), std::nextafter(x, T(INFINITY))});
    }
    for (int bits = 0; bits < 1 << 16;
         ++bits) {  // what the 16-bit floats hold, and the ties between two of them
      const auto low = static_cast<std::uint16_t>(bits),
                 next = static_cast<std::uint16_t>(bits + 1);
      for (const auto& [m, e] : {std::pair{10, 5}, std::pair{7, 8}}) {
        const T x = static_cast<T>(decode_bits(low, m, e));
        result.insert(result.end(),
                      {x, static_cast<T>((x + static_cast<T>(decode_bits(next, m, e))) / 2)});
      }
    }
    for (int i = 0; i < 100'000; ++i) {
      const T mantissa = static_cast<T>(static_cast<double>(static_cast<std::int64_t>(random())));
      result.push_back(std::ldexp(mantissa, static_cast<int>(random() % 120) - 110));
    }
  }
  return result;
}

// ---- On the device.

/// Arrays on the device with the stream that they are used on.
class Gpu {
 public:
  template <class T>
  Array upload(const std::vector<T>& values) const {
    const Array host =
        Array::empty({static_cast<std::int64_t>(values.size())}, dtype_of<T>, host_context_);
    std::copy(values.begin(), values.end(), host.as<T>());
    return kit::to_device(host, context_);
  }
  Array empty(std::int64_t count, Dtype dtype) const {
    return Array::empty({count}, dtype, context_);
  }
  Array download(const Array& x) const { return kit::to_host(x, context_); }
  /// Runs with a thread for each of `count` elements, in blocks of 256.
  void run(const KernelSource& source, std::int64_t count,
           const std::vector<const void*>& arguments) const {
    load_kernel(source, context_.device())
        ->launch(context_.stream, {static_cast<unsigned>((count + 255) / 256)}, {256}, 0,
                 arguments);
  }

 private:
  Context context_ = kit::context(Device::cuda());
  Context host_context_ = kit::context(Device::cpu());
};

class PreludeCudaTest : public testing::TestWithParam<Dtype> {};
INSTANTIATE_TEST_SUITE_P(Reals, PreludeCudaTest, testing::ValuesIn(kReals),
                         [](const auto& test) { return std::string(name_of(test.param)); });

/// Runs `kernel` on the inputs of dtype T and compares output `to[k]` with `want(x, To{})` for
/// every input.
template <class From, class Want>
void compare_casts(const KernelSource& kernel, std::span<const Dtype> to, const Want& want) {
  const Gpu gpu;
  const std::vector<From> values = inputs<From>();
  const auto n = static_cast<std::int64_t>(values.size());
  const Array in = gpu.upload(values);
  void* const in_data = in.data();
  std::vector<Array> outputs;
  std::vector<void*> pointers;
  for (Dtype dtype : to)
    pointers.push_back(outputs.emplace_back(gpu.empty(n, dtype)).data());
  std::vector<const void*> arguments{&in_data, &n};
  for (void*& pointer : pointers)
    arguments.push_back(&pointer);
  gpu.run(kernel, n, arguments);
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    const Array host = gpu.download(outputs[k]);
    dispatch(Sources{}, to[k], "compare", "to", [&]<class To>(Type<To>) {
      int wrong = 0;
      for (std::int64_t i = 0; i < n && wrong < 5; ++i) {
        const From x = values[static_cast<std::size_t>(i)];
        const To got = host.as<To>()[i], wanted = want(x, To{});
        if (same(got, wanted)) continue;
        ++wrong;
        ADD_FAILURE() << fmt::format("{} of {:.20g} to {}: {:.20g}, not {:.20g}", kernel.name,
                                     exact(x), name_of(to[k]), exact(got), exact(wanted));
      }
    });
  }
}

TEST_P(PreludeCudaTest, SaturatingCastsAreExact) {
  SKIP_WITHOUT(Device::cuda());
  dispatch(Sources{}, GetParam(), "test", "from", [&]<class From>(Type<From>) {
    compare_casts<From>(casts("saturate_cast", GetParam(), kReals), kReals,
                        []<class To>(From x, To) { return saturated<To>(exact(x)); });
  });
}

class WrapCudaTest : public testing::TestWithParam<Dtype> {};
INSTANTIATE_TEST_SUITE_P(Integers, WrapCudaTest, testing::ValuesIn(integers()),
                         [](const auto& test) { return std::string(name_of(test.param)); });

TEST_P(WrapCudaTest, WrappingCastsAreModulo) {
  SKIP_WITHOUT(Device::cuda());
  dispatch(Integers{}, GetParam(), "test", "from", [&]<class From>(Type<From>) {
    const auto wrapped = []<class To>(From x, To) {
      if constexpr (is_16bit_float<To> || std::is_floating_point_v<To>) {
        return To{};
      } else if constexpr (std::is_same_v<To, bool>) {
        return x != 0;
      } else {
        const auto bits = static_cast<std::uint64_t>(static_cast<std::int64_t>(x));
        To result;
        std::memcpy(&result, &bits, sizeof(To));  // little-endian: the low bytes
        return result;
      }
    };
    compare_casts<From>(casts("wrap_cast", GetParam(), integers()), integers(), wrapped);
  });
}

TEST_P(PreludeCudaTest, MinimumAndMaximumPropagateNaN) {
  SKIP_WITHOUT(Device::cuda());
  dispatch(Sources{}, GetParam(), "test", "dtype", [&]<class T>(Type<T>) {
    const long double candidates[] = {NAN, -INFINITY, -2,       -1,    -0.0L, 0,
                                      1,   2,         INFINITY, 1e30L, -1e30L};
    std::vector<T> x, y;
    for (long double a : candidates) {
      for (long double b : candidates) {
        x.push_back(saturated<T>(a));
        y.push_back(saturated<T>(b));
      }
    }
    const Gpu gpu;
    const auto n = static_cast<std::int64_t>(x.size());
    const Array in_x = gpu.upload(x), in_y = gpu.upload(y);
    const Array least = gpu.empty(n, GetParam()), greatest = gpu.empty(n, GetParam());
    void* const pointers[] = {in_x.data(), in_y.data(), least.data(), greatest.data()};
    gpu.run(extremes(GetParam()), n, {&pointers[0], &pointers[1], &pointers[2], &pointers[3], &n});
    const Array got_least = gpu.download(least), got_greatest = gpu.download(greatest);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const long double a = exact(x[i]), b = exact(y[i]);
      const bool nan = std::isnan(a) || std::isnan(b);
      const T want_least = nan     ? saturated<T>(NAN)
                           : a < b ? x[i]
                                   : y[i];  // of +0 and -0, the second
      const T want_greatest = nan ? saturated<T>(NAN) : a > b ? x[i] : y[i];
      EXPECT_TRUE(same(got_least.as<T>()[i], want_least)) << "minimum of " << a << " and " << b;
      EXPECT_TRUE(same(got_greatest.as<T>()[i], want_greatest))
          << "maximum of " << a << " and " << b;
    }
  });
}

template <class R>
void check_complex(Dtype dtype) {
  using C = std::complex<R>;
  constexpr auto kUlp = static_cast<long double>(std::numeric_limits<R>::epsilon());
  constexpr R kHuge = std::numeric_limits<R>::max() / 2,
              kInfinity = std::numeric_limits<R>::infinity();
  std::vector<C> x{{3, 4},   {kHuge, kHuge}, {kInfinity, NAN}, {NAN, -kInfinity},
                   {NAN, 1}, {0, 0},         {1, 2},           {0, 5}};
  std::vector<C> y{{3, 4}, {kHuge, 1}, {1, 1}, {2, 0}, {1, 1}, {1, 0}, {0, 0}, {0, 2}};
  std::mt19937_64 random(5);
  std::uniform_real_distribution<R> uniform(-2, 2);
  for (int i = 0; i < 10'000; ++i) {
    x.emplace_back(uniform(random), uniform(random));
    y.emplace_back(uniform(random), uniform(random));
  }
  const Gpu gpu;
  const auto n = static_cast<std::int64_t>(x.size());
  const Array in_x = gpu.upload(x), in_y = gpu.upload(y),
              out = gpu.empty(n * kComplexResults, dtype);
  void* const pointers[] = {in_x.data(), in_y.data(), out.data()};
  gpu.run(complex_arithmetic(dtype), n, {&pointers[0], &pointers[1], &pointers[2], &n});
  const Array host = gpu.download(out);
  const auto bits = [](C got, C want) {
    return same(got.real(), want.real()) && same(got.imag(), want.imag());
  };
  for (std::size_t i = 0; i < x.size(); ++i) {
    const R a = x[i].real(), b = x[i].imag(), c = y[i].real(), d = y[i].imag();
    const C* got = host.as<C>() + i * kComplexResults;
    const std::string at = fmt::format("of ({}, {}) and ({}, {})", a, b, c, d);
    EXPECT_TRUE(bits(got[0], C(a + c, b + d))) << "sum " << at;
    EXPECT_TRUE(bits(got[1], C(a - c, b - d))) << "difference " << at;
    EXPECT_TRUE(bits(got[2], C(a * c - b * d, a * d + b * c))) << "product " << at;
    EXPECT_TRUE(bits(got[4], C(-a, -b))) << "negative " << at;
    EXPECT_TRUE(bits(got[5], C(a, -b))) << "conjugate " << at;
    EXPECT_TRUE(bits(got[6], C(a * c, b * c))) << "multiple " << at;
    EXPECT_TRUE(same(got[7].imag(), R(a * a + b * b))) << "norm " << at;
    EXPECT_EQ(got[8], C(a == c && b == d, !(a == c && b == d) + 2 * !(a == 0 && b == 0)))
        << "comparison " << at;
    const long double magnitude =
        std::hypot(static_cast<long double>(a), static_cast<long double>(b));
    if (std::isfinite(magnitude)) {
      EXPECT_NEAR(got[7].real(), magnitude, 2 * kUlp * magnitude) << "abs " << at;
    } else {
      EXPECT_TRUE(same(got[7].real(), static_cast<R>(magnitude))) << "abs " << at;
    }
    if (i < 8) continue;  // quotients of the special ones follow below
    using Wide = std::complex<long double>;
    const Wide quotient = Wide(a, b) / Wide(c, d);
    EXPECT_LE(std::abs(Wide(got[3].real(), got[3].imag()) - quotient),
              8 * kUlp * std::abs(quotient))
        << "quotient " << at;
  }
  const C* quotients = host.as<C>() + 3;
  EXPECT_EQ(quotients[0], C(1, 0));
  EXPECT_EQ(quotients[5 * kComplexResults], C(0, 0));
  EXPECT_EQ(quotients[6 * kComplexResults], C(kInfinity, kInfinity));  // NumPy's: (1 + 2i) / 0
  EXPECT_EQ(quotients[7 * kComplexResults], C(R(2.5), 0));

  const Array narrow = gpu.empty(n, Dtype::c64), wide = gpu.empty(n, Dtype::c128);
  void* const cast_pointers[] = {in_x.data(), narrow.data(), wide.data()};
  gpu.run(complex_casts(dtype), n, {&cast_pointers[0], &cast_pointers[1], &cast_pointers[2], &n});
  const Array got_narrow = gpu.download(narrow), got_wide = gpu.download(wide);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto as_narrow = got_narrow.as<std::complex<float>>()[i];
    const auto as_wide = got_wide.as<std::complex<double>>()[i];
    EXPECT_TRUE(same(as_narrow.real(), static_cast<float>(x[i].real())));
    EXPECT_TRUE(same(as_narrow.imag(), static_cast<float>(x[i].imag())));
    EXPECT_TRUE(same(as_wide.real(), static_cast<double>(x[i].real())));
    EXPECT_TRUE(same(as_wide.imag(), static_cast<double>(x[i].imag())));
  }
}

TEST(PreludeCuda, ComplexArithmetic) {
  SKIP_WITHOUT(Device::cuda());
  check_complex<float>(Dtype::c64);
  check_complex<double>(Dtype::c128);
}

TEST(PreludeCuda, ReductionsKeepTheOrder) {
  SKIP_WITHOUT(Device::cuda());
  struct Affine {
    std::uint32_t a, b;
    Affine then(Affine g) const { return {g.a * a, g.a * b + g.b}; }
    bool operator==(const Affine&) const = default;
  };
  constexpr int kThreads = 256, kBlocks = 3;
  std::mt19937 random(3);
  std::vector<std::uint32_t> words(2 * kThreads * kBlocks);
  for (auto& word : words)
    word = static_cast<std::uint32_t>(random()) | 1;
  const auto* in = reinterpret_cast<const Affine*>(words.data());
  const Gpu gpu;
  const Array device_in = gpu.upload(words);
  const auto count = static_cast<std::int64_t>(words.size());
  const Array warps = gpu.empty(count, Dtype::u32), blocks = gpu.empty(count, Dtype::u32);
  const Array sums = gpu.empty(count / 2, Dtype::f64);
  void* const pointers[] = {device_in.data(), warps.data(), blocks.data(), sums.data()};
  gpu.run(kReduce, count / 2, {&pointers[0], &pointers[1], &pointers[2], &pointers[3]});
  const Array of_warp = gpu.download(warps), of_block = gpu.download(blocks),
              sum = gpu.download(sums);
  const auto reduce = [&](int begin, int end) {
    Affine all{1, 0};
    for (int i = begin; i < end; ++i)
      all = all.then(in[i]);
    return all;
  };
  for (int i = 0; i < kThreads * kBlocks; ++i) {
    const int block = i / kThreads * kThreads;
    EXPECT_EQ(of_warp.as<Affine>()[i], reduce(i / 32 * 32, i / 32 * 32 + 32)) << i;
    EXPECT_EQ(of_block.as<Affine>()[i], reduce(block, block + kThreads)) << i;
    double want = 0;
    for (int k = block; k < block + kThreads; ++k)
      want += in[k].a;  // whole numbers: exact in any order
    EXPECT_EQ(sum.as<double>()[i], want) << i;
  }
}

}  // namespace
}  // namespace forebay::cuda
