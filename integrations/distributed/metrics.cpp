#include <algorithm>
#include <cstdlib>

#include <nlohmann/json.hpp>

#include <forebay/array/require.h>
#include <forebay/integrations/distributed/impl.h>

namespace forebay::distributed {
namespace {

std::string names_of(const Metrics& metrics) {
  std::string names;
  for (const auto& [name, value] : metrics)
    names += (names.empty() ? "" : ", ") + name;
  return names.empty() ? "nothing" : names;
}

}  // namespace

Metrics metrics_of(const Stats& stats) {
  return {{"batches", static_cast<double>(stats.batches)},
          {"samples", static_cast<double>(stats.samples)},
          {"bad_samples", static_cast<double>(stats.bad_samples)},
          {"wait_ms", stats.wait_ms},
          {"read_ms", stats.read_ms},
          {"blocked_ms", stats.blocked_ms},
          {"copied_bytes", static_cast<double>(stats.copied_bytes)},
          {"returned_bytes", static_cast<double>(stats.returned_bytes)},
          {"slots", static_cast<double>(stats.slots)}};
}

std::vector<RankMetric> Ranks::gather(const Metrics& mine) {
  // Texts of the numbers' very bits: JSON has neither NaN nor infinity.
  nlohmann::json json = nlohmann::json::array();
  for (const auto& [name, value] : mine)
    json.push_back({name, fmt::format("{:a}", value)});
  const auto texts = impl_->gather(json.dump(), "gather of metrics");
  std::vector<RankMetric> metrics;
  for (int rank = 0; rank < size(); ++rank) {
    Metrics theirs;
    for (const auto& pair : nlohmann::json::parse(texts[static_cast<std::size_t>(rank)]))
      theirs.emplace_back(pair[0], std::strtod(pair[1].get<std::string>().c_str(), nullptr));
    const bool same = theirs.size() == mine.size() &&
                      std::equal(theirs.begin(), theirs.end(), mine.begin(),
                                 [](const auto& a, const auto& b) { return a.first == b.first; });
    impl_->all_know |= !same;
    FOREBAY_REQUIRE(same, invalid, "gather: rank {} has the metrics {}, but rank {} has {}.", rank,
                    names_of(theirs), this->rank(), names_of(mine));
    for (std::size_t i = 0; i < theirs.size(); ++i) {
      const auto& [name, value] = theirs[i];
      if (rank == 0) metrics.push_back({name, 0, value, value, 0, 0});
      RankMetric& metric = metrics[i];
      metric.sum += value;
      if (value < metric.min) metric.min = value, metric.min_rank = rank;
      if (value > metric.max) metric.max = value, metric.max_rank = rank;
    }
  }
  return metrics;
}

std::string to_text(const std::vector<RankMetric>& metrics) {
  std::string text = fmt::format("{:<16}{:>16}{:>16} {:<10}{:>16} {}\n", "", "sum", "min",
                                 "on rank", "max", "on rank");
  for (const RankMetric& metric : metrics) {
    text += fmt::format("{:<16}{:>16.10g}{:>16.10g} {:<10}{:>16.10g} {}\n", metric.name, metric.sum,
                        metric.min, metric.min_rank, metric.max, metric.max_rank);
  }
  return text;
}

}  // namespace forebay::distributed
