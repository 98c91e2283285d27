#include <forebay/pipeline/config/bind_on_error.h>

#include <algorithm>
#include <limits>

#include <forebay/array/require.h>
#include <forebay/pipeline/config/settings.h>

namespace forebay::config {
namespace {

void bind_check(const Node::Entry& entry, Report& report, std::vector<Check>& checks) {
  Check check{.column = entry.key, .position = entry.position};
  MapReader reader(entry.value, MapReader::names(check_keys()),
                   fmt::format("checks: {}: ", entry.key), report);
  reader.read_into("finite", check.finite);
  const auto read_bound = [&](std::string_view name, std::optional<Number>& bound) {
    Number number;
    if (reader.find(name) != nullptr && reader.read_into(name, number)) bound = number;
  };
  read_bound("min", check.min);
  read_bound("max", check.max);
  checks.push_back(std::move(check));
}

void bind_checks(MapReader& reader, Spec& spec) {
  constexpr std::string_view kShape = "it must be a map such as {min: 0, max: 9}";
  const Node* node = reader.find("checks");
  if (node == nullptr || node->kind == Node::Kind::null) return;
  if (node->kind != Node::Kind::map)
    return reader.wrong("checks", *node, "it must be a map such as {x: {finite: true}}");
  for (const Node::Entry& entry : node->entries) {
    if (entry.value.kind == Node::Kind::map) {
      bind_check(entry, reader.report(), spec.checks);
    } else {
      reader.wrong("checks." + entry.key, entry.value, kShape);
    }
  }
}

bool read_mode(MapReader& reader, std::string_view name, OnError& on_error) {
  int mode = static_cast<int>(on_error.mode);
  const bool right = reader.read_choice(name, mode, kErrorModes);
  on_error.mode = static_cast<ErrorMode>(mode);
  return right;
}

void bind_map(const Node& node, const std::string& folder, Report& report, OnError& on_error) {
  MapReader reader(node, MapReader::names(on_error_keys()), "on_error: ", report);
  if (reader.require("mode", alternatives(kErrorModes)) == nullptr) return;
  read_mode(reader, "mode", on_error);
  if (reader.find("max_count") != nullptr) {
    std::int64_t count = 0;
    if (reader.read_integer("max_count", count, 0, std::numeric_limits<std::int64_t>::max()))
      on_error.max_count = count;
  }
  if (const Node* share = reader.find("max_share")) {
    double value = 0;
    if (!reader.read_into("max_share", value)) return;
    if (!(value >= 0 && value <= 1))
      return reader.wrong("max_share", *share, "it must be between 0 and 1");
    on_error.max_share = value;
  }
  reader.read_into("quarantine", on_error.quarantine);
  if (!on_error.quarantine.empty()) on_error.quarantine = resolve_path(folder, on_error.quarantine);
}

}  // namespace

void bind_on_error(MapReader& reader, const std::string& folder, Spec& spec) {
  bind_checks(reader, spec);
  const Node* node = reader.find("on_error");
  if (node == nullptr) return;
  spec.on_error_position = node->position;
  if (node->kind == Node::Kind::map) {
    bind_map(*node, folder, reader.report(), spec.on_error);
  } else {
    read_mode(reader, "on_error", spec.on_error);
  }
}

}  // namespace forebay::config
