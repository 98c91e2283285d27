// From tables to statistics. The sums are exact, so mean and std are rounded once; order statistics
// lie somewhere in their bins.

#include <algorithm>
#include <cmath>
#include <limits>

#include <forebay/array/require.h>
#include <forebay/pipeline/fit/state.h>

namespace forebay {
namespace {

using fit_detail::Channel;
using fit_detail::FieldTables;
using fit_detail::Natural;
using fit_detail::Wide;
using fit_detail::Words;
using Bin = TallyBins::Bin;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// The digits of a number in base 2^32, each a sum of its own.
Natural joined(const Wide* digits, int count) {
  Natural number;
  for (int i = 0; i < count; ++i)
    number.add(Natural(digits[i]), 32 * i);
  return number;
}

/// magnitude * 2^exponent with the bin's sign.
double value_of(const Bin& bin, std::uint64_t magnitude) {
  const double value = std::ldexp(static_cast<double>(magnitude), bin.exponent);
  return bin.negative ? 0 - value : value;
}
double lowest(const Bin& bin) {
  return value_of(bin, bin.negative ? bin.base + bin.width - 1 : bin.base);
}
double highest(const Bin& bin) {
  return value_of(bin, bin.negative ? bin.base : bin.base + bin.width - 1);
}

/// The finite values of one bin.
struct Group {
  double low, high;  ///< the least and the greatest that the bin has room for
  std::int64_t count;
};

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

/// What is known of one channel, with the finite values in ascending groups.
struct Values {
  FitStatistics statistics;
  std::int64_t finite = 0;
  std::vector<Group> groups;
};

void set_moments(FitStatistics& statistics, std::int64_t finite, const Sums& sums) {
  const Natural count{static_cast<Wide>(finite)};
  const bool below = sums.positive < sums.negative;
  Natural sum = below ? sums.negative : sums.positive;
  sum.subtract(below ? sums.positive : sums.negative);
  const double mean = quotient(sum, count, sums.unit);
  statistics.mean = below ? -mean : mean;
  Natural spread = count * sums.squares;
  spread.subtract(sum * sum);
  statistics.std = root_quotient(spread, count, sums.unit);
}

/// The group of a bin, narrowed to one value where the sums say that all are equal.
Group group_of(const Bin& bin, const TallyBins& bins, const Words& words) {
  Group group{lowest(bin), highest(bin), static_cast<std::int64_t>(words[0])};
  if (bin.width == 1) return group;
  const Natural low = joined(words.data() + 1, bins.low_digits());
  const Natural square = joined(words.data() + 1 + bins.low_digits(), bins.square_digits());
  if (Natural(words[0]) * square == low * low) {
    // A quotient without a rest: low digits of equal values.
    const double all = quotient(low, Natural(words[0]), 0);
    group.low = group.high = value_of(bin, bin.base + static_cast<std::uint64_t>(all));
  }
  return group;
}

Values values_of(const Channel& channel, const TallyBins& bins) {
  Values values;
  std::vector<std::pair<Bin, const Words*>> finite;
  Sums sums;
  for (const auto& [number, words] : channel.table) {
    const Bin bin = bins.at(number);
    const auto count = static_cast<std::int64_t>(words[0]);
    values.statistics.count += count;
    if (bin.kind == Bin::Kind::nan) values.statistics.nan += count;
    if (bin.kind == Bin::Kind::infinite) values.statistics.inf += count;
    if (bin.kind != Bin::Kind::finite) continue;
    values.finite += count;
    sums.unit = finite.empty() ? bin.exponent : std::min(sums.unit, bin.exponent);
    finite.emplace_back(bin, &words);
    values.groups.push_back(group_of(bin, bins, words));
  }
  FitStatistics& statistics = values.statistics;
  statistics.mean = statistics.std = statistics.min = statistics.max = kNaN;
  if (values.finite == 0) return values;
  for (const auto& [bin, words] : finite)
    sums.add(bin, bins, *words);
  set_moments(statistics, values.finite, sums);
  statistics.max = bins.value_of_order(channel.extremes[0]);
  statistics.min = bins.value_of_order(~channel.extremes[1]);
  std::sort(values.groups.begin(), values.groups.end(),
            [](const Group& a, const Group& b) { return a.low < b.low; });
  for (Group& group : values.groups) {
    group.low = std::max(group.low, statistics.min);
    group.high = std::min(group.high, statistics.max);
  }
  return values;
}

struct Estimate {
  double value, error;
};

/// The value of rank `rank`, from 0.
Estimate order_statistic(const Values& values, std::int64_t rank) {
  if (rank == 0) return {values.statistics.min, 0};
  if (rank == values.finite - 1) return {values.statistics.max, 0};
  auto group = values.groups.begin();
  for (; rank >= group->count; ++group)
    rank -= group->count;
  const double share = (static_cast<double>(rank) + 0.5) / static_cast<double>(group->count);
  const double value = group->low + (group->high - group->low) * share;
  return {value, std::max(value - group->low, group->high - value)};
}

/// NumPy's method `linear`.
Estimate percentile(const Values& values, double percent) {
  const double place = static_cast<double>(values.finite - 1) * (percent / 100);
  const double whole = std::floor(place), part = place - whole;
  const auto rank = static_cast<std::int64_t>(whole);
  const Estimate below = order_statistic(values, rank);
  const Estimate above = order_statistic(values, std::min(rank + 1, values.finite - 1));
  const double apart = above.value - below.value;
  return {part < 0.5 ? below.value + apart * part : above.value - apart * (1 - part),
          std::max(below.error, above.error)};
}

/// Edges of about equally wide bins, each where a bin of the table begins, so that the counts are
/// exact. `begins`: all of those, ascending.
std::vector<double> edges_of(const Values& values, const std::vector<double>& begins, bool integers,
                             std::int64_t bins) {
  double first = values.statistics.min, last = values.statistics.max;
  if (integers) {
    last += 1;  // so that the greatest value has a bin of its own
  } else if (first == last) {
    return {first - 0.5, last + 0.5};
  }
  std::vector<double> edges{first};
  // Halves, since the difference of two doubles may be none.
  const double step = last / static_cast<double>(bins) - first / static_cast<double>(bins);
  for (std::int64_t i = 1; i < bins; ++i) {
    const double wanted = first + step * static_cast<double>(i);
    auto near = std::lower_bound(begins.begin(), begins.end(), wanted);
    if (near == begins.end() || (near != begins.begin() && wanted - near[-1] <= *near - wanted))
      --near;
    if (*near > edges.back() && *near < last) edges.push_back(*near);
  }
  edges.push_back(last);
  return edges;
}

FitStatistics statistics_of(const FieldTables& field, const Channel& channel,
                            const std::vector<double>& begins, const FitReportSettings& settings) {
  Values values = values_of(channel, field.bins());
  FitStatistics& statistics = values.statistics;
  for (const double percent : settings.percentiles) {
    const Estimate estimate =
        values.finite > 0 ? percentile(values, percent) : Estimate{kNaN, kNaN};
    statistics.percentiles.push_back(estimate.value);
    statistics.percentile_errors.push_back(estimate.error);
  }
  if (values.finite == 0) return statistics;
  statistics.edges = edges_of(values, begins, !is_float(field.dtype), settings.bins);
  statistics.counts.assign(statistics.edges.size() - 1, 0);
  for (const Group& group : values.groups) {
    const auto above =
        std::upper_bound(statistics.edges.begin(), statistics.edges.end(), group.low);
    const auto bin =
        std::clamp<std::ptrdiff_t>(above - statistics.edges.begin() - 1, 0,
                                   static_cast<std::ptrdiff_t>(statistics.counts.size()) - 1);
    statistics.counts[static_cast<std::size_t>(bin)] += group.count;
  }
  return statistics;
}

/// Where the bins of a table begin, ascending.
std::vector<double> beginnings(const TallyBins& bins) {
  std::vector<double> begins;
  for (std::int64_t i = 0; i < bins.count(); ++i) {
    const Bin bin = bins.at(i);
    if (bin.kind == Bin::Kind::finite && bin.width > 0) begins.push_back(lowest(bin));
  }
  std::sort(begins.begin(), begins.end());
  return begins;
}

}  // namespace

FitReport finish(const FitPartial& partial, const FitReportSettings& settings) {
  const FitPartial::State& state = partial.state();
  const auto missing = state.missing({0, state.samples});
  FOREBAY_REQUIRE(missing.empty(), invalid,
                  "fit: {} of {} are missing; put the parts of all shards together first.",
                  fit_detail::to_string(missing), state.samples);
  FOREBAY_REQUIRE(settings.bins >= 1, invalid, "fit: `bins` is {}; it must be at least 1.",
                  settings.bins);
  for (const double percent : settings.percentiles)
    FOREBAY_REQUIRE(percent >= 0 && percent <= 100, invalid,
                    "fit: there is no percentile {}; percentiles are 0 to 100.", percent);
  FitReport report{.samples = state.samples, .percentiles = settings.percentiles, .fields = {}};
  for (const FieldTables& field : state.fields) {
    const std::vector<double> begins = beginnings(field.bins());
    FitField result{
        .name = field.name, .dtype = field.dtype, .shape = field.shape, .statistics = {}};
    for (const Channel& channel : field.channels)
      result.statistics.push_back(statistics_of(field, channel, begins, settings));
    report.fields.push_back(std::move(result));
  }
  return report;
}

}  // namespace forebay
