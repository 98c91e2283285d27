// Numbers of elements and random words, on both devices.
#include "kit/kit.h"
#include "kit/oracle.h"

#include <array>
#include <cmath>
#include <functional>

#include <forebay/array/philox.h>
#include <forebay/ops/expr/cpu_levels.h>
#include <forebay/ops/expr/run_test.h>

namespace forebay::expr {
namespace {

class RandomExprTest : public kit::DeviceTest {};

Expr number(std::uint64_t value) { return Expr::constant(value, Dtype::u64); }

/// The numbers 0, 1, .. in memory.
Array counted(const Dims& shape) {
  return kit::generate(shape, Dtype::u64, [](std::int64_t i) { return static_cast<double>(i); });
}

DEVICE_TEST(RandomExprTest, IndexIsTheArrayOfNumbersUnderEveryIndexMap) {
  const Context context = kit::context(device());
  using Map = std::function<Expr(const Expr&)>;
  const std::vector<std::pair<Dims, Map>> maps = {
      {{7}, [](const Expr& a) { return a; }},
      {{}, [](const Expr& a) { return a; }},
      {{5, 300}, [](const Expr& a) { return a; }},
      {{5, 300},
       [](const Expr& a) {
         return permute(a, {1, 0});
       }},
      {{40, 50, 3},
       [](const Expr& a) {
         return permute(a, {2, 0, 1});
       }},
      {{3, 40, 50},
       [](const Expr& a) {
         return permute(a, {1, 2, 0});
       }},
      {{6, 300}, [](const Expr& a) { return slice(a, 1, 7, 290, 3); }},
      {{6, 300}, [](const Expr& a) { return slice(a, 1, INT64_MAX, INT64_MIN, -1); }},
      {{6, 30}, [](const Expr& a) { return slice(a, 0, 5, 1, -2); }},
      {{6, 30},
       [](const Expr& a) {
         return reshape(a, {3, 2, 5, 6});
       }},
      {{300},
       [](const Expr& a) {
         return broadcast_to(a, {4, 300});
       }},
      {{4, 1},
       [](const Expr& a) {
         return broadcast_to(a, {4, 300});
       }},
      {{2, 500}, [](const Expr& a) { return frame(a, 1, 40, 16); }},
  };
  for (const auto& [shape, map] : maps) {
    const Array memory = counted(shape);
    const Expr index = map(Expr::index(shape)), want = map(leaf_like(0, memory));
    const auto where = testing::PrintToString(shape);
    const Array expected = run(want, {memory}, context);
    EXPECT_TRUE(kit::same_bits(run(index, {memory}, context), expected)) << where;
    // Beside arrays in memory, of other elements than its own.
    const Array bytes = kit::random(index.shape(), Dtype::u8, 1, 0, 99);
    const Array turned = kit::with_layout(bytes, kit::Layout::transposed);
    for (const Array& x : {bytes, turned}) {
      const Expr sum = index + cast(leaf_like(0, x), Dtype::u64);
      const Expr memory_sum = leaf_like(0, expected) + cast(leaf_like(1, x), Dtype::u64);
      EXPECT_TRUE(kit::same_bits(run(sum, {x}, context), run(memory_sum, {expected, x}, context)))
          << where;
    }
  }
}

DEVICE_TEST(RandomExprTest, IndexIsReadThroughAsASourceIs) {
  const Context context = kit::context(device());
  const Expr part = slice(Expr::leaf(0, Dtype::u64, {6, 8}), 1, 2, 7);
  const Array want = run(part, {counted({6, 8})}, context);
  for (const Expr& source : {Expr::index({6, 8}), Expr::index({6, 8}) + number(0)})
    EXPECT_TRUE(kit::same_bits(run(substitute(part, {&source, 1}), {}, context), want));
}

std::uint32_t word(std::uint64_t place, std::uint64_t sequence, std::uint64_t key) {
  const std::uint64_t block = place / 4;
  return forebay::philox(
      {static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32),
       static_cast<std::uint32_t>(sequence), static_cast<std::uint32_t>(sequence >> 32)},
      key)[place % 4];
}

DEVICE_TEST(RandomExprTest, PhiloxGivesTheWordsOfItsPlaces) {
  const Context context = kit::context(device());
  const std::uint64_t key = 0x123456789abcdef0;
  for (const Dims& shape : {Dims{5}, Dims{3, 1}, Dims{3, 7}, Dims{4, 1000}, Dims{2, 3, 256},
                            Dims{700, 6}, Dims{3, 4099}}) {
    const std::int64_t samples = shape[0], elements = count_of(shape) / samples;
    std::vector<std::int64_t> ids;
    Dims sample, column{samples};
    for (int axis = 1; axis < shape.rank; ++axis) {
      sample.push_back(shape[axis]);
      column.push_back(1);
    }
    for (std::int64_t i = 0; i < samples; ++i)
      ids.push_back(i * i * 0x10000001 + 3);
    const Array ids_array = Array::from<std::int64_t>({samples}, ids);
    const Expr sequence = cast(reshape(leaf_like(0, ids_array), column), Dtype::u64) +
                          number(std::uint64_t{513} << 48);
    for (const std::uint64_t first : {0ull, 1ull, 6ull, (77ull << 34) + 2, 0xFFFFFFFFull - 9}) {
      for (const std::uint64_t step : {1, 2, 5}) {
        const Expr place = broadcast_to(Expr::index(sample), shape) * number(step) + number(first);
        const Array got = run(philox(place, sequence, number(key)), {ids_array}, context);
        ASSERT_EQ(got.dtype(), Dtype::u32);
        for (std::int64_t i = 0; i < got.count(); ++i) {
          const auto at = first + static_cast<std::uint64_t>(i % elements) * step;
          const auto in = static_cast<std::uint64_t>(ids[static_cast<std::size_t>(i / elements)]) +
                          (std::uint64_t{513} << 48);
          ASSERT_EQ(got.as<std::uint32_t>()[i], word(at, in, key))
              << testing::PrintToString(shape) << " element " << i << " from " << first;
        }
      }
    }
  }
}

/// Words at the ends, around steps of the conversions, and some of all sizes.
template <class T>
std::vector<T> words() {
  std::vector<T> all;
  for (int shift = 0; shift < static_cast<int>(8 * sizeof(T)); ++shift) {
    const T power = T(1) << shift;
    for (const T x : {power, T(power - 1), T(power + 1), T(~power), T(power * 3)})
      all.push_back(x);
  }
  for (std::uint64_t i = 0; i < 20000; ++i)
    all.push_back(static_cast<T>(std::uint64_t{word(i, 1, 2)} << 32 | word(i, 3, 4)));
  return all;
}

template <class T>
Array numbers_of(Opcode opcode, const Context& context) {
  const Array x = kit::array_of(words<T>());
  return run(unary(opcode, leaf_like(0, x)), {x}, context);
}

DEVICE_TEST(RandomExprTest, UniformIsTheUpperBits) {
  const Context context = kit::context(device());
  const auto short_words = words<std::uint32_t>();
  const Array f32 = numbers_of<std::uint32_t>(Opcode::uniform, context);
  ASSERT_EQ(f32.dtype(), Dtype::f32);
  for (std::size_t i = 0; i < short_words.size(); ++i)
    ASSERT_EQ(f32.as<float>()[i], std::ldexp(static_cast<double>(short_words[i] >> 8), -24));
  const auto long_words = words<std::uint64_t>();
  const Array f64 = numbers_of<std::uint64_t>(Opcode::uniform, context);
  ASSERT_EQ(f64.dtype(), Dtype::f64);
  for (std::size_t i = 0; i < long_words.size(); ++i)
    ASSERT_EQ(f64.as<double>()[i], std::ldexp(static_cast<double>(long_words[i] >> 11), -53));
}

/// How often a standard normal number exceeds z.
double tail_of(double z) { return std::erfc(z / std::sqrt(2.0)) / 2; }
double density_of(double z) { return std::exp(-z * z / 2) / std::sqrt(2 * 3.14159265358979323846); }

/// The probability that `z` should be exceeded with, and what an error of `relative` changes.
template <class T>
void expect_quantiles(const Array& got, double relative) {
  using Number = std::conditional_t<sizeof(T) == 4, float, double>;
  const auto all = words<T>();
  const int bits = 8 * sizeof(T);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double z = std::abs(static_cast<double>(got.as<Number>()[i]));
    const T magnitude = all[i] & (~T(0) >> 1);
    // Near 0 the distance from one half says more than the tail.
    const double tail = std::ldexp(static_cast<double>(magnitude) + 0.5, -bits);
    const double middle = std::ldexp(static_cast<double>(T(~all[i]) & (~T(0) >> 1)) + 0.5, -bits);
    const double error =
        middle < 0.25 ? std::erf(z / std::sqrt(2.0)) / 2 - middle : tail - tail_of(z);
    ASSERT_NEAR(error, 0, 1.2 * relative * z * density_of(z) + 1e-16) << all[i] << " gives " << z;
    ASSERT_EQ(std::signbit(got.as<Number>()[i]), (all[i] >> (bits - 1)) != 0);
  }
}

DEVICE_TEST(RandomExprTest, NormalIsTheQuantileOfTheWord) {
  const Context context = kit::context(device());
  expect_quantiles<std::uint32_t>(numbers_of<std::uint32_t>(Opcode::normal, context), 1.2e-6);
  expect_quantiles<std::uint64_t>(numbers_of<std::uint64_t>(Opcode::normal, context), 8e-7);
}

DEVICE_TEST(RandomExprTest, NumbersAreTheSameBitsOnBothDevices) {
  const Context context = kit::context(device()), cpu = kit::context(Device::cpu());
  for (const Opcode opcode : {Opcode::uniform, Opcode::normal}) {
    EXPECT_TRUE(kit::same_bits(numbers_of<std::uint32_t>(opcode, context),
                               numbers_of<std::uint32_t>(opcode, cpu)));
    EXPECT_TRUE(kit::same_bits(numbers_of<std::uint64_t>(opcode, context),
                               numbers_of<std::uint64_t>(opcode, cpu)));
  }
}

TEST(RandomLoops, GiveTheSameBitsAtEveryLevel) {
  const auto run_loop = [](const CpuLevel& level, Opcode opcode, const auto& given, Dtype operand,
                           Dtype result) {
    const auto count = static_cast<std::int64_t>(given.size());
    const Array out = kit::generate({count}, result, [](std::int64_t) { return 0; });
    const Operand operands[] = {
        {given.data(), false}, {given.data(), false}, {given.data(), false}};
    level.loop(opcode, operand, result)(out.data(), operands, count);
    return out;
  };
  const auto short_words = words<std::uint32_t>();
  const auto long_words = words<std::uint64_t>();
  const CpuLevel& base = cpu_levels().front();
  for (const CpuLevel& level : cpu_levels()) {
    EXPECT_TRUE(kit::same_bits(run_loop(level, Opcode::philox, long_words, Dtype::u64, Dtype::u32),
                               run_loop(base, Opcode::philox, long_words, Dtype::u64, Dtype::u32)));
    for (const Opcode opcode : {Opcode::uniform, Opcode::normal}) {
      EXPECT_TRUE(kit::same_bits(run_loop(level, opcode, short_words, Dtype::u32, Dtype::f32),
                                 run_loop(base, opcode, short_words, Dtype::u32, Dtype::f32)))
          << level.name;
      EXPECT_TRUE(kit::same_bits(run_loop(level, opcode, long_words, Dtype::u64, Dtype::f64),
                                 run_loop(base, opcode, long_words, Dtype::u64, Dtype::f64)))
          << level.name;
    }
  }
}

TEST(RandomExprErrors, SayWhatIsAllowed) {
  const Expr x = Expr::leaf(0, Dtype::u32, {3}), y = Expr::leaf(1, Dtype::f32, {3});
  EXPECT_ERROR(philox(x, number(1), number(2)), unsupported,
               "philox: operand has dtype u32; supported: u64.");
  EXPECT_ERROR(unary(Opcode::normal, y), unsupported,
               "normal: operand has dtype f32; supported: u32, u64.");
}

}  // namespace
}  // namespace forebay::expr
