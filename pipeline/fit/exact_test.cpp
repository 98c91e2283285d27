#include <forebay/pipeline/fit/exact.h>

#include <cmath>
#include <limits>
#include <random>

#include "kit/kit.h"

namespace forebay::fit_detail {
namespace {

Natural natural(Wide value, int shift = 0) { return Natural(value).shifted(shift); }

TEST(Natural, AddsSubtractsMultipliesAndShifts) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t a = random() >> random() % 64, b = random() >> random() % 64;
    const int shift = static_cast<int>(random() % 200);
    EXPECT_EQ(Natural(a) * Natural(b), Natural(static_cast<Wide>(a) * b));
    Natural sum(a);
    sum.add(Natural(b));
    EXPECT_EQ(sum, Natural(static_cast<Wide>(a) + b));
    EXPECT_EQ(sum <=> Natural(a),
              b == 0 ? std::strong_ordering::equal : std::strong_ordering::greater);
    Natural moved(a);
    moved.add(Natural(b), shift);
    Natural back = moved;
    back.subtract(natural(b, shift));
    EXPECT_EQ(back, Natural(a));
    EXPECT_EQ(natural(a, shift).shifted(-shift), Natural(a));
    EXPECT_EQ(natural(a, -shift % 64), Natural(a >> shift % 64));
    EXPECT_EQ(natural(a, shift).bit_width(), a == 0 ? 0 : std::bit_width(a) + shift);
  }
}

TEST(Quotient, IsRoundedOnce) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 2000; ++i) {
    // Division and square roots of doubles are rounded once, too.
    const std::uint64_t a = random() >> (11 + random() % 53),
                        b = 1 + (random() >> 11 >> random() % 53);
    const auto x = static_cast<double>(a), y = static_cast<double>(b);
    EXPECT_EQ(quotient(Natural(a), Natural(b), 0), x / y);
    EXPECT_EQ(root_quotient(Natural(a), Natural(1), 0), std::sqrt(x));
    const int far = static_cast<int>(random() % 900);
    EXPECT_EQ(quotient(natural(a, far), Natural(b), -1 - far), x / y / 2);
    EXPECT_EQ(root_quotient(natural(a, 2 * far), Natural(2), -far), std::sqrt(x) / 2);
  }
  const Wide tie = (Wide{1} << 53) + 1;
  EXPECT_EQ(quotient(Natural(tie), Natural(1), 0), 0x1p53);
  EXPECT_EQ(quotient(Natural(tie + 2), Natural(1), 0), 0x1p53 + 4);
  Natural above = natural(tie, 1000);
  above.add(Natural(1));
  EXPECT_EQ(quotient(above, Natural(1), -1000), 0x1p53 + 2);
  EXPECT_EQ(root_quotient(above * above, Natural(1), -1000), 0x1p53 + 2);
  EXPECT_EQ(root_quotient(Natural(tie) * Natural(tie), Natural(1), 0), 0x1p53);
}

TEST(Quotient, EndsWhereDoublesEnd) {
  constexpr double kLeast = std::numeric_limits<double>::denorm_min();
  EXPECT_EQ(quotient(Natural(1), Natural(1), -1074), kLeast);
  EXPECT_EQ(quotient(Natural(1), Natural(2), -1074), 0);
  EXPECT_EQ(quotient(Natural(3), Natural(2), -1074), 2 * kLeast);
  EXPECT_EQ(quotient(Natural(3), Natural(4), -1074), kLeast);
  EXPECT_EQ(quotient(Natural(0), Natural(4), 0), 0);
  EXPECT_EQ(root_quotient(Natural(1), Natural(1), -1074), kLeast);
  EXPECT_EQ(quotient(Natural(1), Natural(1), 1024), INFINITY);
}

}  // namespace
}  // namespace forebay::fit_detail
