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

const std::string* find(const Identity::Parts& parts, const std::string& name) {
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
    if (find(was, name) == nullptr) lines += fmt::format("\n  {}: is new: {}", name, text);
  }
  return lines;
}

void check_identity(const Json& state, const Identity& identity) {
  const std::string plan = differences(parts_of(state.at("plan")), identity.plan);
  const std::string data = differences(parts_of(state.at("dataset")), identity.dataset);
  FOREBAY_REQUIRE(
      plan.empty() && data.empty(), invalid,
      "the state is of another {}; restore it where it was saved, or allow changes:{}{}",
      plan.empty()   ? "dataset"
      : data.empty() ? "pipeline"
                     : "pipeline and another dataset",
      plan, data);
  FOREBAY_REQUIRE(state.at("plan_hash") == identity.plan_hash() &&
                      state.at("dataset_hash") == identity.dataset_hash(),
                  invalid, "the hashes of the state are not those of what it says; it was edited.");
}

}  // namespace

std::string write_state(const Identity& identity, const BatchPosition& position) {
  const Json state = {{"forebay_state", kVersion},
                      {"epoch", position.epoch},
                      {"cursor", position.cursor},
                      {"plan_hash", identity.plan_hash()},
                      {"dataset_hash", identity.dataset_hash()},
                      {"source", identity.source},
                      {"plan", object_of(identity.plan)},
                      {"dataset", object_of(identity.dataset)}};
  return state.dump(-1, ' ', false, Json::error_handler_t::replace);
}

BatchPosition read_state(std::string_view text, const Identity& identity, bool allow_changes) {
  try {
    const Json state = Json::parse(text);
    const auto version = state.at("forebay_state").get<std::int64_t>();
    FOREBAY_REQUIRE(version == kVersion, invalid,
                    "the state has version {}; this Forebay reads version {}.", version, kVersion);
    if (!allow_changes) check_identity(state, identity);
    return {state.at("epoch").get<std::int64_t>(), 0, state.at("cursor").get<std::int64_t>()};
  } catch (const Json::exception& error) {
    fail(ErrorKind::invalid, "this is no state of a pipeline: {}.", error.what());
  }
}

}  // namespace forebay
