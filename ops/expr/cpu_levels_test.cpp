// The compiled loops of each level of the processor: the same bits from all of them.
#include "kit/kit.h"

#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include <forebay/ops/expr/cpu_levels.h>
#include <forebay/ops/expr/opcodes.h>

namespace forebay::expr {
namespace {

constexpr std::int64_t kCount = 3 * kChunk + 37;  // whole vectors of every width, and a rest

/// Every pattern of bits has its turn: small and huge numbers, subnormal ones, infinities and NaN.
std::vector<std::byte> random_bits(std::uint64_t seed) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(kCount) * 16);
  for (std::byte& byte : bytes) {
    seed = seed * 6364136223846793005 + 1442695040888963407;
    byte = static_cast<std::byte>(seed >> 56);
  }
  return bytes;
}
/// Numbers that functions are usually asked for.
std::vector<std::byte> plain_numbers(Dtype dtype, std::uint64_t seed) {
  const Array x = kit::random({kCount}, dtype, seed, -30, 30);
  std::vector<std::byte> bytes(static_cast<std::size_t>(kCount) * 16);
  std::memcpy(bytes.data(), x.data(), x.bytes());
  return bytes;
}

/// Its first element, of `size` bytes, everywhere.
void make_uniform(std::vector<std::byte>& operand, std::size_t size) {
  for (std::size_t i = size; i < operand.size(); ++i)
    operand[i] = operand[i - size];
}

/// `size` is that of an element; `uniform`: the second operand is its first element everywhere.
Array run(CpuLoop* loop, std::array<std::vector<std::byte>, 3> operands, Dtype result,
          std::size_t size, bool uniform) {
  const Array out = kit::generate({kCount}, result, [](std::int64_t) { return 0; });
  if (uniform) make_uniform(operands[1], size);
  Operand given[3];
  for (std::size_t k = 0; k < 3; ++k)
    given[k] = {operands[k].data(), uniform && k == 1};
  loop(out.data(), given, kCount);
  return out;
}

void expect_same(Opcode opcode, Dtype operand, Dtype result) {
  const CpuLevel& base = cpu_levels().front();
  CpuLoop* const want = base.loop(opcode, operand, result);
  ASSERT_NE(want, nullptr) << info(opcode).name << " " << name_of(operand);
  const std::size_t size = size_of(operand);
  using Operands = std::array<std::vector<std::byte>, 3>;
  for (const Operands& operands : {Operands{random_bits(1), random_bits(2), random_bits(3)},
                                   Operands{plain_numbers(operand, 1), plain_numbers(operand, 2),
                                            plain_numbers(operand, 3)}}) {
    for (bool uniform : {false, true}) {
      const Array bits = run(want, operands, result, size, uniform);
      for (const CpuLevel& level : cpu_levels().subspan(1)) {
        EXPECT_TRUE(kit::same_bits(
            run(level.loop(opcode, operand, result), operands, result, size, uniform), bits))
            << info(opcode).name << " " << name_of(operand) << " to " << name_of(result) << ", "
            << level.name;
      }
    }
  }
}

TEST(CpuLevelsTest, GiveTheSameBits) {
  if (cpu_levels().size() == 1) GTEST_SKIP() << "this processor has the base level only";
  for (Dtype dtype : kAllDtypes) {
    for (Opcode opcode : computing_opcodes()) {
      if (info(opcode).supported.has(dtype) && !(opcode == Opcode::conj && !is_complex(dtype)) &&
          cpu_levels().front().loop(opcode, dtype, result_dtype(opcode, dtype)) != nullptr) {
        expect_same(opcode, dtype, result_dtype(opcode, dtype));
      }
    }
    expect_same(Opcode::select, dtype, dtype);
    for (Dtype to : kAllDtypes) {
      if (!is_complex(dtype) || is_complex(to) || to == Dtype::boolean)
        expect_same(Opcode::cast_saturate, dtype, to);
      if (is_integer(dtype) && is_integer(to)) expect_same(Opcode::cast_wrap, dtype, to);
    }
  }
}

template <class T>
void expect_exact_quotients() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> divisors{T(1),
                          T(3),
                          T(0.13),
                          T(57.375),
                          std::nextafter(T(2), T(0)),
                          std::nextafter(T(1), T(2)),
                          T(-3),
                          T(0),
                          T(-0.0),
                          Limits::min(),
                          Limits::denorm_min(),
                          Limits::max(),
                          Limits::infinity(),
                          Limits::quiet_NaN()};
  std::vector<T> numerators = divisors;
  std::uint64_t seed = 1;
  const auto random = [&](int exponents) {
    seed = seed * 6364136223846793005 + 1442695040888963407;
    const T fraction = 1 + static_cast<T>(seed >> 12) * T(0x1p-52);
    return std::ldexp(fraction,
                      static_cast<int>(seed % static_cast<unsigned>(2 * exponents)) - exponents);
  };
  for (int i = 0; i < 300; ++i)
    divisors.push_back(random(i % 3 == 0 ? 100 : 3));
  const std::size_t few = numerators.size();
  for (int i = 0; i < 5000; ++i)
    numerators.push_back((i % 2 == 0 ? 1 : -1) * (i % 7 == 0 ? 0 : random(i > 4000 ? 120 : 8)));
  const auto count = static_cast<std::int64_t>(numerators.size());
  for (const CpuLevel& level : cpu_levels()) {
    CpuLoop* const divide = level.loop(Opcode::div, dtype_of<T>, dtype_of<T>);
    for (T divisor : divisors) {
      const std::vector<T> same(kChunk, divisor);
      // With and without the numbers that need care beside the others.
      for (std::size_t begin : {std::size_t{0}, few}) {
        std::vector<T> got(numerators.size());
        const Operand operands[] = {{numerators.data() + begin, false}, {same.data(), true}};
        divide(got.data(), operands, count - static_cast<std::int64_t>(begin));
        for (std::size_t i = 0; i + begin < numerators.size(); ++i) {
          const T want = numerators[i + begin] / divisor;
          ASSERT_TRUE(std::memcmp(&got[i], &want, sizeof(T)) == 0 ||  // -0 is not 0
                      (std::isnan(got[i]) && std::isnan(want)))
              << level.name << " " << numerators[i + begin] << " / " << divisor;
        }
      }
    }
  }
}

TEST(CpuLevelsTest, DivideByOneNumberToTheLastBit) {
  expect_exact_quotients<float>();
  expect_exact_quotients<double>();
}

/// One loop for two instructions gives the bits of one after the other.
template <class T>
void expect_same_in_one(Opcode first, Opcode second) {
  const Dtype dtype = dtype_of<T>;
  using Limits = std::numeric_limits<T>;
  const std::vector<T> special{T(-0.5),
                               T(0.5),
                               T(0),
                               T(-0.0),
                               Limits::max(),
                               Limits::denorm_min(),
                               Limits::infinity(),
                               Limits::quiet_NaN()};
  const auto bytes_of = [](std::vector<T> values) {
    values.resize(static_cast<std::size_t>(kCount), values[0]);
    std::vector<std::byte> bytes(values.size() * sizeof(T));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
  };
  std::vector<std::array<std::vector<std::byte>, 3>> cases{
      {random_bits(1), random_bits(2), random_bits(3)},
      {plain_numbers(dtype, 1), plain_numbers(dtype, 2), plain_numbers(dtype, 3)}};
  for (T b : special) {
    for (T c : special) {
      std::vector<T> x = special;
      for (T value : special)
        x.push_back(-value);
      cases.push_back({bytes_of(x), bytes_of({b}), bytes_of({c})});
      // Zeros beside numbers that need no care.
      cases.push_back({bytes_of({T(1), T(-0.0), T(0), b, T(-2)}), bytes_of({b}), bytes_of({c})});
    }
  }
  const CpuLevel& base = cpu_levels().front();
  for (auto& operands : cases) {
    for (int uniform = 0; uniform < 4; ++uniform) {  // a bit for each of b and c
      std::array<std::vector<std::byte>, 3> given = operands;
      Operand abc[3] = {{given[0].data(), false}, {}, {}};
      for (std::size_t k = 1; k < 3; ++k) {
        const bool is_uniform = (uniform >> (k - 1) & 1) != 0;
        if (is_uniform) make_uniform(given[k], sizeof(T));
        abc[k] = {given[k].data(), is_uniform};
      }
      const auto zeros = [&] {
        return kit::generate({kCount}, dtype, [](std::int64_t) { return 0; });
      };
      const Array between = zeros(), want = zeros();
      base.loop(first, dtype, dtype)(between.data(), abc, kCount);
      const Operand then[2] = {{between.data(), false}, abc[2]};
      base.loop(second, dtype, dtype)(want.data(), then, kCount);
      for (const CpuLevel& level : cpu_levels()) {
        const Array got = zeros();
        CpuLoop* const both = level.loop_of_two(first, second, dtype);
        ASSERT_NE(both, nullptr);
        both(got.data(), abc, kCount);
        ASSERT_TRUE(kit::same_bits(got, want))
            << info(first).name << ", " << info(second).name << " " << name_of(dtype) << ", "
            << level.name << ", uniform " << uniform;
      }
    }
  }
}

TEST(CpuLevelsTest, TwoInstructionsInOneLoopGiveTheSameBits) {
  for (const auto& [first, second] :
       {std::pair{Opcode::sub, Opcode::div}, std::pair{Opcode::maximum, Opcode::minimum},
        std::pair{Opcode::mul, Opcode::add}}) {
    expect_same_in_one<float>(first, second);
    expect_same_in_one<double>(first, second);
    EXPECT_EQ(cpu_level().loop_of_two(first, second, Dtype::bf16), nullptr)
        << "what is between is rounded";
  }
  EXPECT_EQ(cpu_level().loop_of_two(Opcode::div, Opcode::sub, Dtype::f32), nullptr);
}

TEST(CpuLevelsTest, CopyRowsOfEveryStride) {
  const std::vector<std::byte> from = random_bits(7);
  for (const CpuLevel& level : cpu_levels()) {
    for (std::int64_t size : {1, 2, 4, 8, 16}) {
      for (std::int64_t stride : {0, 1, 2, 3, 4, 5, 7, -1, -3}) {
        for (std::int64_t n : {1, 15, 16, 17, 45, 64, 65, 130}) {
          if (n * std::abs(stride) > kCount / 2) continue;
          // From the middle, so that both directions fit.
          const std::byte* const first = from.data() + kCount / 2 * size;
          std::vector<std::byte> dense(static_cast<std::size_t>(n * size)), want;
          for (std::int64_t i = 0; i < n; ++i)
            want.insert(want.end(), first + i * stride * size, first + (i * stride + 1) * size);
          level.gather(static_cast<std::size_t>(size))(dense.data(), first, stride, n);
          EXPECT_EQ(dense, want) << level.name << " " << size << " " << stride << " " << n;
          if (stride == 0) continue;
          std::vector<std::byte> back = from, unchanged = from;
          std::byte* const target = back.data() + kCount / 2 * size;
          for (std::int64_t i = 0; i < n; ++i)
            std::memset(target + i * stride * size, 0, static_cast<std::size_t>(size));
          level.scatter(static_cast<std::size_t>(size))(target, dense.data(), stride, n);
          EXPECT_EQ(back, unchanged) << level.name << " " << size << " " << stride << " " << n;
        }
      }
    }
  }
}

TEST(CpuLevelsTest, LookUpEveryByte) {
  const std::vector<std::byte> table = random_bits(8);
  std::vector<std::uint8_t> bytes;
  for (int i = 0; i < 1000; ++i)
    bytes.push_back(static_cast<std::uint8_t>(i * 89 + i / 256));
  for (const CpuLevel& level : cpu_levels()) {
    for (std::size_t size : {1, 2, 4, 8, 16}) {
      for (std::size_t n : {0, 1, 63, 64, 65, 1000}) {
        std::vector<std::byte> found(n * size + 1, std::byte{7}), want;
        for (std::size_t i = 0; i < n; ++i) {
          const auto first = table.begin() + static_cast<std::ptrdiff_t>(bytes[i] * size);
          want.insert(want.end(), first, first + static_cast<std::ptrdiff_t>(size));
        }
        want.push_back(std::byte{7});
        level.lookup(size)(found.data(), bytes.data(), table.data(), static_cast<std::int64_t>(n));
        EXPECT_EQ(found, want) << level.name << " " << size << " " << n;
      }
    }
  }
}

}  // namespace
}  // namespace forebay::expr
