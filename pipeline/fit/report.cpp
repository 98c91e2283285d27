// From tables to statistics. The sums are exact, so mean and std are rounded once; order statistics
// lie somewhere in their bins.

#include <algorithm>
#include <cmath>
#include <limits>

#include <forebay/array/require.h>
#include <forebay/pipeline/fit/moments.h>
#include <forebay/pipeline/fit/state.h>

namespace forebay {
namespace {

using fit_detail::Channel;
using fit_detail::FieldTables;
using fit_detail::joined;
using fit_detail::Natural;
using fit_detail::Words;
using Bin = TallyBins::Bin;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

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

/// What is known of one channel, with the finite values in ascending groups.
struct Values {
  FitStatistics statistics;
  std::int64_t finite = 0;
  std::vector<Group> groups;
};

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

/// How the values that a table tells apart stem from those of the field: moved by an origin.
struct Axis {
  const FieldTables* tables;
  double origin = 0;

  /// The least and the greatest value x of the dtype for which x - origin, as the pipeline computes
  /// it, is at least, or at most, y.
  double least(double y) const {
    return is_moved() ? first([y](double moved) { return moved >= y; }, 0) : y;
  }
  double greatest(double y) const {
    return is_moved() ? first([y](double moved) { return moved > y; }, 1) : y;
  }

 private:
  bool is_moved() const { return !tables->origins.empty(); }

  /// `back` values before the first that is so; moving keeps the order of values.
  template <class Is>
  double first(Is is, std::uint64_t back) const {
    const bool single = tables->dtype == Dtype::f32;
    const TallyBins bins = tables->bins();
    // The orders of the finite values.
    const std::uint64_t least_order = single ? 0x00800000 : 0x0010000000000000;
    const std::uint64_t greatest_order = single ? 0xff7fffff : 0xffefffffffffffff;
    std::uint64_t low = least_order, high = greatest_order + 1;
    while (low < high) {
      const std::uint64_t middle = low + (high - low) / 2;
      const double x = bins.value_of_order(middle);
      const double moved =
          single ? static_cast<double>(static_cast<float>(x) - static_cast<float>(origin))
                 : x - origin;
      if (is(moved)) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return bins.value_of_order(std::clamp(low - back, least_order, greatest_order));
  }
};

/// The finite values of a table, in ascending groups of values of the field.
std::vector<Group> groups_of(const Axis& axis, const Channel& channel) {
  const TallyBins bins = axis.tables->bins();
  std::vector<Group> groups;
  for (const auto& [number, words] : channel.table) {
    const Bin bin = bins.at(number);
    if (bin.kind != Bin::Kind::finite) continue;
    Group group = group_of(bin, bins, words);
    group.low = axis.least(group.low);
    group.high = axis.greatest(group.high);
    groups.push_back(group);
  }
  std::sort(groups.begin(), groups.end(),
            [](const Group& a, const Group& b) { return a.low < b.low; });
  return groups;
}

/// `whole` is the field's own table; the groups are those of `channel`, on `axis`.
Values values_of(const FieldTables& field, const Channel& whole, const Axis& axis,
                 const Channel& channel) {
  const TallyBins bins = field.bins();
  Values values;
  FitStatistics& statistics = values.statistics;
  for (const auto& [number, words] : whole.table) {
    const Bin::Kind kind = bins.at(number).kind;
    const auto count = static_cast<std::int64_t>(words[0]);
    statistics.count += count;
    if (kind == Bin::Kind::nan) statistics.nan += count;
    if (kind == Bin::Kind::infinite) statistics.inf += count;
    if (kind == Bin::Kind::finite) values.finite += count;
  }
  const auto [mean, std] = moments(whole, bins);
  statistics.mean = mean;
  statistics.std = std;
  statistics.min = statistics.max = kNaN;
  if (values.finite == 0) return values;
  statistics.max = bins.value_of_order(whole.extremes[0]);
  statistics.min = bins.value_of_order(~whole.extremes[1]);
  values.groups = groups_of(axis, channel);
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
std::vector<double> edges_of(const Values& values, const std::vector<double>& begins,
                             const Axis& axis, std::int64_t bins) {
  double first = values.statistics.min, last = values.statistics.max;
  if (!is_float(axis.tables->dtype)) {
    last += 1;  // so that the greatest value has a bin of its own
  } else if (first == last) {
    return {first - 0.5, last + 0.5};
  }
  std::vector<double> edges{first};
  // Halves, since the difference of two doubles may be none.
  const double step = last / static_cast<double>(bins) - first / static_cast<double>(bins);
  for (std::int64_t i = 1; i < bins; ++i) {
    const double wanted = first + step * static_cast<double>(i) - axis.origin;
    auto near = std::lower_bound(begins.begin(), begins.end(), wanted);
    if (near == begins.end() || (near != begins.begin() && wanted - near[-1] <= *near - wanted))
      --near;
    const double edge = axis.least(*near);
    if (edge > edges.back() && edge < last) edges.push_back(edge);
  }
  edges.push_back(last);
  return edges;
}

FitStatistics statistics_of(const FieldTables& field, std::size_t channel,
                            const FieldTables& tables, const std::vector<double>& begins,
                            const FitReportSettings& settings) {
  const Axis axis{&tables, tables.origins.empty() ? 0 : tables.origins[channel]};
  Values values = values_of(field, field.channels[channel], axis, tables.channels[channel]);
  FitStatistics& statistics = values.statistics;
  for (const double percent : settings.percentiles) {
    const Estimate estimate =
        values.finite > 0 ? percentile(values, percent) : Estimate{kNaN, kNaN};
    statistics.percentiles.push_back(estimate.value);
    statistics.percentile_errors.push_back(estimate.error);
  }
  if (values.finite == 0) return statistics;
  statistics.edges = edges_of(values, begins, axis, settings.bins);
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
  FitReport report{.samples = state.samples - state.bad,
                   .bad = state.bad,
                   .percentiles = settings.percentiles,
                   .fields = {}};
  for (const FieldTables& field : state.fields) {
    if (!field.origins.empty()) continue;
    // What says how it is distributed.
    const FieldTables* tables = &field;
    for (const FieldTables& other : state.fields)
      if (other.name == field.name && !other.origins.empty()) tables = &other;
    const std::vector<double> begins = beginnings(tables->bins());
    FitField result{
        .name = field.name, .dtype = field.dtype, .shape = field.shape, .statistics = {}};
    for (std::size_t channel = 0; channel < field.channels.size(); ++channel)
      result.statistics.push_back(statistics_of(field, channel, *tables, begins, settings));
    report.fields.push_back(std::move(result));
  }
  return report;
}

}  // namespace forebay
