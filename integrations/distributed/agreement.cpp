// What the ranks must have in common, and who has what.

#include <algorithm>

#include <nlohmann/json.hpp>

#include <forebay/array/require.h>
#include <forebay/integrations/distributed/impl.h>
#include <forebay/pipeline/config/config.h>
#include <forebay/pipeline/identity.h>

namespace forebay::distributed {
namespace {

using Json = nlohmann::json;
using Parts = Identity::Parts;

Parts parts_of(const Pipeline& pipeline) {
  const Plan& plan = pipeline.plan();
  const Identity identity = identity_of(plan);
  const BatchPosition position = pipeline.position();
  Parts parts = {{"version of Forebay", FOREBAY_VERSION}};
  parts.insert(parts.end(), identity.plan.begin(), identity.plan.end());
  for (const auto& [name, text] : identity.dataset)
    parts.emplace_back("dataset, " + name, text);
  parts.emplace_back("batch size", fmt::format("{}", plan.spec->batch_size));
  parts.emplace_back("position",
                     fmt::format("behind {} samples of epoch {}", position.cursor, position.epoch));
  return parts;
}

/// A line for each part that is not the same on all ranks.
std::string differences(const std::vector<Parts>& ranks) {
  std::vector<std::string> names;
  for (const Parts& parts : ranks) {
    for (const auto& [name, text] : parts)
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  std::string lines;
  for (const std::string& name : names) {
    std::vector<std::pair<std::string, std::vector<int>>> values;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      std::string value = "nothing";
      for (const auto& [part, text] : ranks[rank])
        if (part == name) value = text;
      auto found = std::find_if(values.begin(), values.end(),
                                [&](const auto& known) { return known.first == value; });
      if (found == values.end()) found = values.insert(found, {value, {}});
      found->second.push_back(static_cast<int>(rank));
    }
    if (values.size() == 1) continue;
    lines += fmt::format("\n  {}:", name);
    for (std::size_t i = 0; i < values.size(); ++i)
      lines +=
          fmt::format("{} {} on {}", i == 0 ? "" : ";", values[i].first, list_of(values[i].second));
  }
  return lines;
}

}  // namespace

std::string list_of(const std::vector<int>& ranks) {
  std::vector<std::string> runs;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1)
      ++end;
    if (end - i > 2) {
      runs.push_back(fmt::format("{} to {}", ranks[i], ranks[end - 1]));
      i = end;
    } else {
      runs.push_back(fmt::format("{}", ranks[i++]));
    }
  }
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < runs.size(); ++i)
    text += (i == 0 ? "" : i + 1 == runs.size() ? " and " : ", ") + runs[i];
  return text;
}

void Ranks::Impl::agree(const Parts& parts, const std::string& problem, const char* call) {
  const Json mine = {{"parts", parts}, {"problem", problem}};
  const auto texts = gather(mine.dump(-1, ' ', false, Json::error_handler_t::replace), call);
  std::vector<Parts> all;
  std::string problems;
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    const Json theirs = Json::parse(texts[rank]);
    all.push_back(theirs["parts"].get<Parts>());
    const auto text = theirs["problem"].get<std::string>();
    if (!text.empty()) problems += fmt::format("\n  rank {}: {}", rank, text);
  }
  const std::string lines = problems.empty() ? differences(all) : problems;
  all_know |= !lines.empty();
  FOREBAY_REQUIRE(problems.empty(), invalid, "not every rank has a pipeline:{}", problems);
  FOREBAY_REQUIRE(lines.empty(), invalid,
                  "the ranks do not have the same pipeline; they must differ in nothing but their "
                  "shard and device:{}",
                  lines);
}

namespace {

/// What is wrong with the shard of a pipeline; empty: nothing.
std::string shard_problem(const Pipeline& pipeline, const Shard& wanted) {
  const Shard& shard = pipeline.spec().shard;
  if (shard == wanted) return {};
  return fmt::format(
      "its pipeline has shard {} of {}; it must be {} of {}. Write `shard: auto`, or give the "
      "builder ranks.shard().",
      shard.shard_id, shard.num_shards, wanted.shard_id, wanted.num_shards);
}

}  // namespace

void Ranks::check(const Pipeline& pipeline) {
  impl_->agree(parts_of(pipeline), shard_problem(pipeline, shard()), "check");
}

Pipeline Ranks::pipeline(Spec spec, const Options& options) {
  return impl_->make_pipeline([&] { return std::move(spec); }, *this, options);
}

Pipeline Ranks::pipeline(const std::string& path, const Options& options) {
  return impl_->make_pipeline([&] { return load_spec(path); }, *this, options);
}

Pipeline Ranks::Impl::make_pipeline(const std::function<Spec()>& spec_of, const Ranks& ranks,
                                    const Options& options) {
  std::optional<Pipeline> pipeline;
  Parts parts;
  std::string problem;
  try {
    Spec spec = spec_of();
    spec.shard = ranks.shard();
    if (!spec.device) spec.device = ranks.device();
    pipeline = Pipeline::from_spec(std::move(spec), options);
    parts = parts_of(*pipeline);
  } catch (const std::exception& error) {
    if (environment.size == 1) throw;
    problem = error.what();
  }
  agree(parts, problem, "pipeline");
  return std::move(*pipeline);
}

}  // namespace forebay::distributed
