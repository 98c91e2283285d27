#include <forebay/pipeline/fit/exact.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace forebay::fit_detail {
namespace {

/// Bits that a quotient is made with: those of a double, and enough that the rest only matters for
/// being there.
constexpr int kBits = 64;

struct Division {
  Natural quotient;
  bool exact = true;
};

/// Bit by bit: quotients here have few.
Division divide(Natural number, const Natural& divisor) {
  Division result;
  for (int shift = number.bit_width() - divisor.bit_width(); shift >= 0; --shift) {
    const Natural part = divisor.shifted(shift);
    if (number < part) continue;
    number.subtract(part);
    result.quotient.add(Natural(1), shift);
  }
  result.exact = number.is_zero();
  return result;
}

/// floor(sqrt(number)), bit by bit.
Division root(const Natural& number) {
  Division result;
  for (int bit = (number.bit_width() + 1) / 2; bit >= 0; --bit) {
    Natural next = result.quotient;
    next.add(Natural(1), bit);
    if (next * next <= number) result.quotient = std::move(next);
  }
  result.exact = result.quotient * result.quotient == number;
  return result;
}

/// number * 2^exponent, and a bit more unless `exact`. A number of at least kBits bits, or exact.
double rounded(const Natural& number, bool exact, int exponent) {
  constexpr int kDigits = 53, kLeast = -1074;
  if (number.is_zero()) return 0;
  const int drop = std::max(number.bit_width() - kDigits, kLeast - exponent);
  if (drop <= 0) return std::ldexp(static_cast<double>(number.low_word()), exponent);
  std::uint64_t kept = number.shifted(-drop).low_word();
  const bool half = number.bit(drop - 1), more = !exact || !number.ends_in_zeros(drop - 1);
  if (half && (more || (kept & 1) != 0)) ++kept;
  return std::ldexp(static_cast<double>(kept), exponent + drop);
}

}  // namespace

Natural::Natural(Wide value) {
  for (; value != 0; value >>= 32)
    words_.push_back(static_cast<std::uint32_t>(value));
}

void Natural::trim() {
  while (!words_.empty() && words_.back() == 0)
    words_.pop_back();
}

void Natural::add(const Natural& value, int shift) {
  const auto skip = static_cast<std::size_t>(shift / 32);
  const int bits = shift % 32;
  words_.resize(std::max(words_.size(), value.words_.size() + skip + 1) + 1, 0);
  std::uint64_t carry = 0;  // of the sum and of the shift
  std::size_t at = skip;
  for (const std::uint32_t word : value.words_) {
    const std::uint64_t moved = static_cast<std::uint64_t>(word) << bits;
    const std::uint64_t sum = words_[at] + (moved & 0xffffffff) + (carry & 0xffffffff);
    words_[at++] = static_cast<std::uint32_t>(sum);
    carry = (carry >> 32) + (sum >> 32) + (moved >> 32);
  }
  for (; carry != 0; ++at) {
    const std::uint64_t sum = words_[at] + carry;
    words_[at] = static_cast<std::uint32_t>(sum);
    carry = sum >> 32;
  }
  trim();
}

void Natural::subtract(const Natural& value) {
  std::int64_t borrow = 0;
  for (std::size_t i = 0; i < words_.size(); ++i) {
    std::int64_t rest = static_cast<std::int64_t>(words_[i]) + borrow;
    if (i < value.words_.size()) rest -= value.words_[i];
    words_[i] = static_cast<std::uint32_t>(rest);
    borrow = rest < 0 ? -1 : 0;
  }
  trim();
}

Natural Natural::shifted(int bits) const {
  Natural result;
  if (bits >= 0) {
    result.add(*this, bits);
    return result;
  }
  const auto skip = static_cast<std::size_t>(-bits / 32);
  const int rest = -bits % 32;
  for (std::size_t i = skip; i < words_.size(); ++i) {
    const std::uint64_t next = i + 1 < words_.size() ? words_[i + 1] : 0;
    result.words_.push_back(static_cast<std::uint32_t>((next << 32 | words_[i]) >> rest));
  }
  result.trim();
  return result;
}

int Natural::bit_width() const {
  return words_.empty() ? 0
                        : static_cast<int>(32 * (words_.size() - 1)) +
                              static_cast<int>(std::bit_width(words_.back()));
}

bool Natural::bit(int i) const {
  const auto word = static_cast<std::size_t>(i / 32);
  return word < words_.size() && (words_[word] >> (i % 32) & 1) != 0;
}

bool Natural::ends_in_zeros(int i) const {
  for (int bit_number = 0; bit_number < std::min(i, bit_width()); ++bit_number) {
    if (bit(bit_number)) return false;
  }
  return true;
}

std::uint64_t Natural::low_word() const {
  std::uint64_t value = words_.empty() ? 0 : words_[0];
  if (words_.size() > 1) value |= static_cast<std::uint64_t>(words_[1]) << 32;
  return value;
}

Natural operator*(const Natural& a, const Natural& b) {
  Natural product;
  product.words_.resize(a.words_.size() + b.words_.size(), 0);
  for (std::size_t i = 0; i < a.words_.size(); ++i) {
    std::uint64_t carry = 0;
    for (std::size_t j = 0; j < b.words_.size(); ++j) {
      const std::uint64_t sum =
          static_cast<std::uint64_t>(a.words_[i]) * b.words_[j] + product.words_[i + j] + carry;
      product.words_[i + j] = static_cast<std::uint32_t>(sum);
      carry = sum >> 32;
    }
    product.words_[i + b.words_.size()] = static_cast<std::uint32_t>(carry);
  }
  product.trim();
  return product;
}

std::strong_ordering operator<=>(const Natural& a, const Natural& b) {
  if (a.words_.size() != b.words_.size()) return a.words_.size() <=> b.words_.size();
  return std::lexicographical_compare_three_way(a.words_.rbegin(), a.words_.rend(),
                                                b.words_.rbegin(), b.words_.rend());
}

double quotient(const Natural& number, const Natural& divisor, int exponent) {
  if (number.is_zero()) return 0;
  // What is cut off the number is less than one unit of the quotient's last place, or nothing.
  const int shift = divisor.bit_width() + kBits - number.bit_width();
  const Division division = divide(number.shifted(shift), divisor);
  return rounded(division.quotient, division.exact && (shift >= 0 || number.ends_in_zeros(-shift)),
                 exponent - shift);
}

double root_quotient(const Natural& number, const Natural& divisor, int exponent) {
  if (number.is_zero()) return 0;
  int shift = 2 * (divisor.bit_width() + kBits) - number.bit_width();
  shift -= shift % 2;
  const Division whole = root(number.shifted(shift));
  const Division division = divide(whole.quotient, divisor);
  const bool exact = division.exact && whole.exact && (shift >= 0 || number.ends_in_zeros(-shift));
  return rounded(division.quotient, exact, exponent - shift / 2);
}

}  // namespace forebay::fit_detail
