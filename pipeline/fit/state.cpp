#include <forebay/pipeline/fit/state.h>

#include <algorithm>

#include <forebay/array/require.h>

namespace forebay {
namespace fit_detail {

void Channel::add(const Channel& other) {
  for (const auto& [bin, words] : other.table) {
    Words& mine = table[bin];
    for (std::size_t i = 0; i < words.size(); ++i)
      mine[i] += words[i];
  }
  for (std::size_t i = 0; i < extremes.size(); ++i)
    extremes[i] = std::max(extremes[i], other.extremes[i]);
}

std::string to_string(const std::vector<Positions>& ranges) {
  constexpr std::size_t kMost = 4;
  std::string text = "samples ";
  for (std::size_t i = 0; i < std::min(ranges.size(), kMost); ++i) {
    const bool last = i + 1 == ranges.size();
    text += fmt::format("{}{} to {}",
                        i == 0 ? ""
                        : last ? " and "
                               : ", ",
                        ranges[i].begin, ranges[i].end - 1);
  }
  return ranges.size() > kMost ? text + fmt::format(" and {} more ranges", ranges.size() - kMost)
                               : text;
}

}  // namespace fit_detail

void FitPartial::State::add(const State& other) {
  FOREBAY_REQUIRE(about == other.about, invalid,
                  "fit: these are of different data, stages or settings: `{}` and `{}`. Only parts "
                  "of one fit can be put together.",
                  about, other.about);
  add_done(other.done);
  bad += other.bad;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    for (std::size_t c = 0; c < fields[i].channels.size(); ++c)
      fields[i].channels[c].add(other.fields[i].channels[c]);
  }
}

void FitPartial::State::add_done(const std::vector<Positions>& ranges) {
  std::vector<Positions> all = done;
  all.insert(all.end(), ranges.begin(), ranges.end());
  std::sort(all.begin(), all.end(),
            [](const Positions& a, const Positions& b) { return a.begin < b.begin; });
  done.clear();
  for (const Positions& range : all) {
    const bool joins = !done.empty() && range.begin <= done.back().end;
    FOREBAY_REQUIRE(!joins || range.begin == done.back().end, invalid,
                    "fit: {} are in two of the parts; each sample counts once. Leave one of them "
                    "out.",
                    fit_detail::to_string({{range.begin, std::min(range.end, done.back().end)}}));
    if (joins) {
      done.back().end = range.end;
    } else {
      done.push_back(range);
    }
  }
}

std::vector<Positions> FitPartial::State::missing(Positions wanted) const {
  std::vector<Positions> missing;
  for (const Positions& range : done) {
    if (range.begin >= wanted.end || range.end <= wanted.begin) continue;
    if (range.begin > wanted.begin) missing.push_back({wanted.begin, range.begin});
    wanted.begin = range.end;
  }
  if (wanted.begin < wanted.end) missing.push_back(wanted);
  return missing;
}

std::int64_t FitPartial::samples() const { return state_->samples; }

std::int64_t FitPartial::samples_done() const {
  std::int64_t count = 0;
  for (const Positions& range : state_->done)
    count += range.end - range.begin;
  return count;
}

FitPartial merge(std::span<const FitPartial> partials) {
  FOREBAY_REQUIRE(!partials.empty(), invalid, "fit: there are no parts to put together.");
  const auto state = std::make_shared<FitPartial::State>(partials.front().state());
  for (const FitPartial& partial : partials.subspan(1))
    state->add(partial.state());
  return FitPartial(state);
}

FitPartial fit(RankGroup& ranks, Spec spec, const FitSettings& settings, const FitHooks& hooks,
               const FitPartial* begun) {
  spec.shard = {ranks.rank(), ranks.size()};
  if (!spec.device) spec.device = ranks.device();
  const FitPartial mine = fit(spec, settings, hooks, begun);
  if (ranks.size() == 1) return mine;
  std::vector<FitPartial> parts;
  for (const std::string& text : ranks.collect(mine.to_json()))
    parts.push_back(FitPartial::from_json(text, fmt::format("rank {}", parts.size())));
  const std::string whole = ranks.broadcast(ranks.rank() == 0 ? merge(parts).to_json() : "");
  return FitPartial::from_json(whole, "rank 0");
}

}  // namespace forebay
