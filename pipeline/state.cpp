#include <forebay/pipeline/state.h>

#include <algorithm>

#include <nlohmann/json.hpp>

#include <forebay/array/require.h>

namespace forebay {
namespace {

using Json = nlohmann::ordered_json;

/// Goes up when an older state would mean other samples: when an order changes its values, say.
constexpr int kVersion = 1;

Json object_of(const Identity::Parts& parts) {
  Json object = Json::object();
  for (const auto& [name, text] : parts)
    object[name] = text;
  return object;
}

Identity::Parts parts_of(const Json& object) {
  Identity::Parts parts;
  for (const auto& [name, text] : object.items())
    parts.emplace_back(name, text.get<std::string>());
  return parts;
}

const std::string* find(const Identity::Parts& parts, std::string_view name) {
  const auto found = std::find_if(parts.begin(), parts.end(),
                                  [&](const auto& part) { return part.first == name; });
  return found == parts.end() ? nullptr : &found->second;
}

/// A line for each part that differs.
std::string differences(const Identity::Parts& was, const Identity::Parts& is) {
  std::string lines;
  for (const auto& [name, text] : was) {
    const std::string* now = find(is, name);
    if (now == nullptr) {
      lines += fmt::format("\n  {}: was {}; it is gone", name, text);
    } else if (*now != text) {
      lines += fmt::format("\n  {}: was {}; is {}", name, text, *now);
    }
  }
  for (const auto& [name, text] : is) {
    // A run that bad samples ended has had none so far: with what is to become of them it is the
    // same run.
    if (find(was, name) == nullptr && name != kBadSamples)
      lines += fmt::format("\n  {}: is new: {}", name, text);
  }
  return lines;
}

void check_identity(const Json& state, const Identity& identity) {
  const Identity was{parts_of(state.at("plan")), parts_of(state.at("dataset")), {}};
  const std::string plan = differences(was.plan, identity.plan);
  const std::string data = differences(was.dataset, identity.dataset);
  FOREBAY_REQUIRE(
      plan.empty() && data.empty(), invalid,
      "the state is of another {}; restore it where it was saved, or allow changes:{}{}",
      plan.empty()   ? "dataset"
      : data.empty() ? "pipeline"
                     : "pipeline and another dataset",
      plan, data);
  FOREBAY_REQUIRE(
      state.at("plan_hash") == was.plan_hash() && state.at("dataset_hash") == was.dataset_hash(),
      invalid, "the hashes of the state are not those of what it says; it was edited.");
}

}  // namespace

std::string write_state(const Identity& identity, const Standing& standing) {
  const auto& [position, bad] = standing;
  Json state = {
      {"forebay_state", kVersion}, {"epoch", position.epoch}, {"cursor", position.cursor}};
  if (find(identity.plan, kBadSamples) != nullptr) state["bad_samples"] = bad;
  state.update({{"plan_hash", identity.plan_hash()},
                {"dataset_hash", identity.dataset_hash()},
                {"source", identity.source},
                {"plan", object_of(identity.plan)},
                {"dataset", object_of(identity.dataset)}});
  return state.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Standing read_state(std::string_view text, const Identity& identity, bool allow_changes) {
  try {
    const Json state = Json::parse(text);
    const auto version = state.at("forebay_state").get<std::int64_t>();
    FOREBAY_REQUIRE(version == kVersion, invalid,
                    "the state has version {}; this Forebay reads version {}.", version, kVersion);
    if (!allow_changes) check_identity(state, identity);
    const auto number = [&](const char* name) { return state.at(name).get<std::int64_t>(); };
    const std::int64_t bad = state.contains("bad_samples") ? number("bad_samples") : 0;
    return {{number("epoch"), 0, number("cursor")}, bad};
  } catch (const Json::exception& error) {
    fail(ErrorKind::invalid, "this is no state of a pipeline: {}.", error.what());
  }
}

}  // namespace forebay
