#include <forebay/pipeline/fit/moments.h>

#include <algorithm>
#include <limits>

namespace forebay::fit_detail {
namespace {

using Bin = TallyBins::Bin;

/// Exact sums of the finite values, in units of 2^unit and its square.
struct Sums {
  int unit = 0;
  Natural positive, negative, squares;

  void add(const Bin& bin, const TallyBins& bins, const Words& words) {
    const int shift = bin.exponent - unit;
    const Natural base{bin.base}, low = joined(words.data() + 1, bins.low_digits());
    // Of (base + low) and (base + low)^2.
    Natural sum = Natural(words[0]) * base;
    Natural square = sum * base;
    square.add(base * low, 1);
    square.add(joined(words.data() + 1 + bins.low_digits(), bins.square_digits()));
    sum.add(low);
    (bin.negative ? negative : positive).add(sum, shift);
    squares.add(square, 2 * shift);
  }
};

}  // namespace

Natural joined(const Wide* digits, int count) {
  Natural number;
  for (int i = 0; i < count; ++i)
    number.add(Natural(digits[i]), 32 * i);
  return number;
}

Moments moments(const Channel& channel, const TallyBins& bins) {
  Wide finite = 0;
  Sums sums;
  sums.unit = std::numeric_limits<int>::max();
  for (const auto& [number, words] : channel.table) {
    const Bin bin = bins.at(number);
    if (bin.kind != Bin::Kind::finite) continue;
    finite += words[0];
    sums.unit = std::min(sums.unit, bin.exponent);
  }
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  if (finite == 0) return {kNaN, kNaN};
  for (const auto& [number, words] : channel.table) {
    const Bin bin = bins.at(number);
    if (bin.kind == Bin::Kind::finite) sums.add(bin, bins, words);
  }
  const Natural count(finite);
  const bool below = sums.positive < sums.negative;
  Natural sum = below ? sums.negative : sums.positive;
  sum.subtract(below ? sums.positive : sums.negative);
  const double mean = quotient(sum, count, sums.unit);
  Natural spread = count * sums.squares;
  spread.subtract(sum * sum);
  return {below ? -mean : mean, root_quotient(spread, count, sums.unit)};
}

}  // namespace forebay::fit_detail
