#include <forebay/ops/registry.h>

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include <forebay/array/require.h>

namespace forebay {
namespace {

/// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        cost[i][j] = i + j;
        continue;
      }
      cost[i][j] = std::min(
          {cost[i - 1][j] + 1, cost[i][j - 1] + 1, cost[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
      }
    }
  }
  return cost[a.size()][b.size()];
}

}  // namespace

std::string_view nearest_name(std::string_view name, std::span<const std::string_view> names) {
  std::string_view nearest;
  // One slip in three letters: `bins` is none for `min`. A name that contains the other is near at
  // any length.
  std::size_t best = std::max<std::size_t>(name.size() / 3, 1) + 1;
  for (std::string_view candidate : names) {
    std::size_t distance = edit_distance(name, candidate);
    const bool contains = candidate.size() >= 3 && name.find(candidate) != std::string_view::npos;
    const bool contained = name.size() >= 3 && candidate.find(name) != std::string_view::npos;
    if (contains || contained) distance = std::min<std::size_t>(distance, 1);
    if (distance < best) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

const OpEntry& find_op(std::string_view name) {
  std::vector<std::string_view> names;
  for (const OpEntry& entry : registry()) {
    if (entry.def.name == name || (!entry.def.alias.empty() && entry.def.alias == name))
      return entry;
    names.push_back(entry.def.name);
  }
  const std::string_view nearest = nearest_name(name, names);
  if (!nearest.empty())
    fail(ErrorKind::invalid, "unknown op `{}`; did you mean `{}`?", name, nearest);
  fail(ErrorKind::invalid, "unknown op `{}`; there are: {}.", name, fmt::join(names, ", "));
}

}  // namespace forebay
