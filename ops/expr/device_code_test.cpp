// The text of device code, and what fills its parameter. Needs no CUDA.
#include "kit/kit.h"

#include <array>
#include <random>

#include <forebay/ops/expr/device_code.h>
#include <forebay/ops/expr/divisor.h>

namespace forebay::expr {
namespace {

Program program_of(const Expr& expression) { return compile(std::array{expression}); }
Expr number(double value) { return Expr::constant(value, Dtype::f32); }
Context cpu() { return kit::context(Device::cpu()); }

TEST(DeviceCode, IsAStructThatReads) {
  const Expr x = cast(Expr::leaf(0, Dtype::u8, {64, 784}), Dtype::f32);
  const std::string text =
      device_load("load_x", program_of((x - number(0.5)) / number(3)), cpu()).text;
  EXPECT_EQ(text, R"(
struct load_x {
  using Value = f32;
  using Index = i32;  // holds every offset
  i64 whole, row_whole;  // elements that an access may have: in the array, in rows
  const u8* x0;  // source 0
  i64 columns;
  i64 x0_pitch;

  template <bool Exact>
  static Value element(u8 x0, Doubt& doubt) {
    const u8 v0 = x0;
    const f32 v1 = saturate_cast<f32>(v0);
    const f32 v3 = v1 - 0.5f;
    const f32 v5 = small_quotient<Exact>(v3, 3.0f, 0.33333334f);
    return v5;
  }
  static Value element(u8 x0) {
    Doubt doubt;
    return element<true>(x0, doubt);
  }

  struct Row {
    i64 whole;
    const u8* x0;
    Value at(i64 column) const { return element(x0[column]); }
    template <int N>
    struct Fetched {
      Pack<u8, N> x0;
    };
    template <int N>
    Fetched<N> fetch(i64 p) const {
      [[maybe_unused]] const bool together = (N & -N) <= whole;
      return {load_pack<N>(x0 + p * N, together)};
    }
    template <int N>
    Pack<Value, N> values(const Fetched<N>& fetched) const {
      Pack<Value, N> values;
      Doubt doubt;
#pragma unroll
      for (int k = 0; k < N; ++k) values.at[k] = element<false>(fetched.x0.at[k], doubt);
      if (doubt) {
#pragma unroll
        for (int k = 0; k < N; ++k) values.at[k] = element(fetched.x0.at[k]);
      }
      return values;
    }
    template <int N>
    Pack<Value, N> pack(i64 p) const {
      return values<N>(fetch<N>(p));
    }
  };

  Row row(i64 number) const {
    const Index r = Index(number);
    return {row_whole, x0 + r * Index(x0_pitch)};
  }
  Value at(i64 i) const { return element(x0[i]); }
  template <int N>
  Pack<Value, N> pack(i64 p) const {
    const bool together = (N & -N) <= whole;
    const auto x0_pack = load_pack<N>(x0 + p * N, together);
    Pack<Value, N> values;
    Doubt doubt;
#pragma unroll
    for (int k = 0; k < N; ++k) values.at[k] = element<false>(x0_pack.at[k], doubt);
    if (doubt) {
#pragma unroll
      for (int k = 0; k < N; ++k) values.at[k] = element(x0_pack.at[k]);
    }
    return values;
  }
  static constexpr bool kLoose = true;
  template <int N>
  Pack<Value, N> pack_from(i64 i) const {
    const auto x0_pack = load_loose<N>(x0 + i);
    Pack<Value, N> values;
    Doubt doubt;
#pragma unroll
    for (int k = 0; k < N; ++k) values.at[k] = element<false>(x0_pack.at[k], doubt);
    if (doubt) {
#pragma unroll
      for (int k = 0; k < N; ++k) values.at[k] = element(x0_pack.at[k]);
    }
    return values;
  }
};
)");
}

TEST(DeviceCode, IsAStructThatWrites) {
  const Expr spectrum = Expr::leaf(0, Dtype::c64, {6, 33}),
             gain = broadcast_to(Expr::leaf(1, Dtype::f32, {33}), {6, 33});
  const std::string text =
      device_store("store_out", program_of(unary(Opcode::abs, spectrum) * gain), cpu()).text;
  for (const char* part :
       {"using Value = c64;\n  using Stored = f32;\n",
        "  const f32* x1;  // source 0\n  Stored* out;\n",
        "  static Stored element(Value x0, f32 x1) {\n",
        "void put(i64 column, Value value) const { out[column] = element(value, x1[column]); }",
        "return {row_whole, x1 + r * Index(x1_pitch), out + r * Index(columns)};",
        "store_pack(out + p * N, results, together);"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in\n" << text;
  }
}

TEST(DeviceCode, DependsOnTheStructureOnly) {
  const auto text = [](std::int64_t rows, std::int64_t columns) {
    const Expr x = permute(Expr::leaf(0, Dtype::u8, {rows, columns, 3}), {0, 2, 1});
    return device_load("x", program_of(x), cpu()).text;
  };
  EXPECT_EQ(text(4, 5), text(6, 7));
}

TEST(DeviceCode, CountsIn64BitsWhere32AreTooFew) {
  const auto has_wide_index = [](const Expr& x) {
    return device_load("x", program_of(x), cpu()).text.find("using Index = i64;") !=
           std::string::npos;
  };
  constexpr std::int64_t kMost = INT32_MAX;
  EXPECT_FALSE(has_wide_index(Expr::leaf(0, Dtype::u8, {kMost})));
  EXPECT_TRUE(has_wide_index(Expr::leaf(0, Dtype::u8, {kMost + 1})));
  EXPECT_TRUE(has_wide_index(slice(Expr::leaf(0, Dtype::u8, {kMost, 2}), 1, 0, 1)));
  EXPECT_TRUE(has_wide_index(permute(Expr::leaf(0, Dtype::u8, {1 << 16, 1 << 16}), {1, 0})));
}

TEST(DeviceCode, SaysHowManyElementsAnAccessMayHave) {
  alignas(16) std::byte memory[64];
  const auto words = [&](DeviceCode code, std::size_t byte, void* out = nullptr) {
    const ArrayView source{memory + byte, Dtype::f32, Device::cpu(), {}, {}};
    const auto all = code.parameter(std::array{source, source}, out);
    return std::array{static_cast<int>(all[0]), static_cast<int>(all[1])};
  };
  const DeviceCode plain = device_load("x", program_of(Expr::leaf(0, Dtype::f32, {4, 6})), cpu());
  EXPECT_EQ(words(plain, 0), (std::array{INT32_MAX, 2}));  // rows are 24 bytes apart
  EXPECT_EQ(words(plain, 8), (std::array{2, 2}));
  EXPECT_EQ(words(plain, 4), (std::array{1, 1}));
  const Expr turned = permute(Expr::leaf(0, Dtype::f32, {6, 4}), {1, 0});
  EXPECT_EQ(words(device_load("x", program_of(turned), cpu()), 4),
            (std::array{INT32_MAX, INT32_MAX}));
  const DeviceCode store = device_store("x", program_of(Expr::leaf(0, Dtype::f32, {4, 8})), cpu());
  EXPECT_EQ(words(store, 0, memory), (std::array{INT32_MAX, INT32_MAX}));
  EXPECT_EQ(words(store, 0, memory + 8), (std::array{2, 2}));
}

TEST(DeviceCode, StoresTheOpsOwnResultDense) {
  const Expr x = Expr::leaf(0, Dtype::f32, {3, 4});
  EXPECT_ERROR(
      device_store("x", program_of(permute(x, {1, 0})), cpu()), invalid,
      "device_store: source 0 is read with strides (1, 4) from 0 over (4, 3); the op's own "
      "result is read dense.");
  EXPECT_ERROR(device_store("x", program_of(Expr::leaf(1, Dtype::f32, {3, 4})), cpu()), invalid,
               "device_store: the program does not read source 0, the op's own result.");
}

TEST(Divisor, GivesTheQuotientOfEveryIndex) {
  std::mt19937_64 random(1);
  for (bool wide : {false, true}) {
    const auto most = static_cast<std::uint64_t>(wide ? INT64_MAX : INT32_MAX);
    std::vector<std::uint64_t> divisors{1,     2,     3,     5,        7,        641,
                                        65535, 65536, 65537, most / 2, most - 1, most};
    while (divisors.size() < 1000)
      divisors.push_back((random() & most) >> random() % (wide ? 62 : 30) | 1);
    for (std::uint64_t d : divisors) {
      const Divisor divisor(static_cast<std::int64_t>(d), wide);
      for (std::uint64_t n :
           {std::uint64_t{0}, d - 1, d, most / d * d, most / d * d - 1, most, random() & most}) {
        using Wide = unsigned __int128;
        const Wide product = static_cast<Wide>(n) * divisor.multiplier;
        ASSERT_EQ(static_cast<std::uint64_t>(product >> ((wide ? 63 : 0) + divisor.shift)), n / d)
            << n << " / " << d;
      }
    }
  }
}

}  // namespace
}  // namespace forebay::expr
