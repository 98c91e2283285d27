// The only file of the command that includes nlohmann-json: the report of a run and the schema.
#include <cmath>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <forebay/ops/registry.h>
#include <forebay/pipeline/cli/commands.h>
#include <forebay/pipeline/cli/report.h>
#include <forebay/pipeline/cli/settings.h>
#include <forebay/pipeline/config/keys.h>

namespace forebay::cli {
namespace {

using Json = nlohmann::ordered_json;

Json integer(std::int64_t minimum) { return {{"type", "integer"}, {"minimum", minimum}}; }
Json integer(std::int64_t minimum, std::int64_t maximum) {
  Json schema = integer(minimum);
  schema["maximum"] = maximum;
  return schema;
}

template <class Names>
Json one_of(const Names& names) {
  Json values = Json::array();
  for (const std::string_view name : names)
    values.push_back(name);
  return {{"enum", values}};
}

Json one_or_list(const Json& item) {
  return {{"anyOf", Json::array({item, {{"type", "array"}, {"items", item}}})}};
}

Json fields_schema() {
  const Json name = {{"type", "string"}, {"minLength", 1}};
  return {{"anyOf", Json::array({name, {{"type", "array"}, {"items", name}, {"minItems", 1}}})}};
}

Json device_schema() { return {{"type", "string"}, {"pattern", "^(auto|cpu|cuda(:[0-9]+)?)$"}}; }

Json bounded(const char* type, const Field& field) {
  Json schema = {{"type", type}};
  if (!std::isinf(field.min)) schema["minimum"] = field.min;
  if (!std::isinf(field.max)) schema["maximum"] = field.max;
  return schema;
}

/// Or what `forebay fit` has found: `stats.yaml#image.mean`.
Json or_reference(const Json& schema) {
  return {{"anyOf", Json::array({schema, {{"type", "string"}, {"pattern", ".#."}}})}};
}

Json setting_schema(const Setting& setting) {
  const Field& field = setting.field;
  Json schema;
  switch (setting.type) {
    case Setting::Type::boolean:
      schema = {{"type", "boolean"}};
      break;
    case Setting::Type::integer:
      schema = or_reference(bounded("integer", field));
      break;
    case Setting::Type::real:
    case Setting::Type::number:
      schema = or_reference(bounded("number", field));
      break;
    case Setting::Type::text:
    case Setting::Type::array:
      schema = {{"type", "string"}};
      break;
    // NumPy's names are accepted too.
    case Setting::Type::dtype:
      schema = {{"type", "string"}, {"examples", one_of(setting.choices)["enum"]}};
      break;
    case Setting::Type::choice:
      schema = one_of(setting.choices);
      break;
    case Setting::Type::integers:
      schema = one_or_list(or_reference(bounded("integer", field)));
      break;
    case Setting::Type::reals:
      schema = one_or_list(or_reference(bounded("number", field)));
      break;
  }
  if (setting.optional) {
    if (!schema.contains("anyOf")) schema = {{"anyOf", Json::array({schema})}};
    schema["anyOf"].push_back({{"type", "null"}});
  }
  schema["description"] = field.doc;
  return schema;
}

/// Adds the key with its other names, which editors strike through.
void add_names(Json& properties, std::string_view name,
               const std::vector<std::string_view>& aliases, const Json& schema) {
  properties[std::string(name)] = schema;
  for (const std::string_view alias : aliases) {
    Json other = schema;
    other["deprecated"] = true;
    other["description"] = fmt::format("Another name of `{}`.", name);
    properties[std::string(alias)] = other;
  }
}

/// An object with these keys and no other. `of` gives the schema of each key's value.
template <class Of>
Json object_schema(std::span<const config::Key> keys, Of of) {
  Json properties = Json::object(), required = Json::array();
  for (const config::Key& key : keys) {
    if (key.required) required.push_back(key.name);
    Json schema = of(key.name);
    schema["description"] = key.doc;
    add_names(properties, key.name, key.aliases, schema);
  }
  return {{"type", "object"},
          {"properties", properties},
          {"required", required},
          {"additionalProperties", false}};
}

Json text_schema() { return {{"type", "string"}, {"minLength", 1}}; }

Json map_schema(const Json& values) {
  return {{"type", "object"}, {"additionalProperties", values}, {"minProperties", 1}};
}

Json source_schema() {
  const Json part = object_schema(config::part_keys(), [](std::string_view key) -> Json {
    if (key == "type") return {{"const", "npy"}};
    return key == "columns" ? map_schema({{"type", "string"}}) : text_schema();
  });
  return object_schema(config::source_keys(), [&](std::string_view key) -> Json {
    if (key == "type") return one_of(config::kSourceTypes);
    if (key == "columns") return map_schema({{"type", "string"}});
    if (key == "sources") return {{"type", "array"}, {"items", part}, {"minItems", 1}};
    return text_schema();
  });
}

Json shuffle_schema() {
  const Json map = object_schema(config::shuffle_keys(), [](std::string_view key) {
    return key == "mode" ? one_of(config::kShuffleModes) : integer(1);
  });
  return {{"anyOf", Json::array({map, {{"type", "boolean"}}})}};
}

Json sampling_schema() {
  return object_schema(config::sampling_keys(), [](std::string_view key) -> Json {
    if (key == "mode") return one_of(config::kSamplingModes);
    if (key == "samples")
      return {{"anyOf", Json::array({integer(1), one_of(config::kStoppingStrategies)})}};
    if (key == "proportions") return map_schema({{"type", "number"}, {"minimum", 0}});
    return text_schema();
  });
}

Json subset_schema() {
  return {{"anyOf",
           Json::array(
               {text_schema(), {{"type", "array"}, {"items", integer(0)}}, {{"type", "null"}}})}};
}

Json split_schema() {
  return object_schema(config::split_keys(), [](std::string_view key) -> Json {
    if (key == "part") return one_of(config::kSplitParts);
    if (key == "validation")
      return {{"type", "number"}, {"exclusiveMinimum", 0}, {"exclusiveMaximum", 1}};
    return key == "seed" ? integer(0) : text_schema();
  });
}

Json shard_schema() {
  const Json map = object_schema(config::shard_keys(), [](std::string_view key) -> Json {
    return {{"anyOf", Json::array({integer(key == "num_shards" ? 1 : 0), {{"const", "auto"}}})}};
  });
  return {{"anyOf", Json::array({map, {{"const", "auto"}}})}};
}

Json checks_schema() {
  const Json check = object_schema(config::check_keys(), [](std::string_view key) -> Json {
    return {{"type", key == "finite" ? "boolean" : "number"}};
  });
  return {{"type", Json::array({"object", "null"})}, {"additionalProperties", check}};
}

Json on_error_schema() {
  const Json map = object_schema(config::on_error_keys(), [](std::string_view key) -> Json {
    if (key == "mode") return one_of(config::kErrorModes);
    if (key == "max_share") return {{"type", "number"}, {"minimum", 0}, {"maximum", 1}};
    return key == "max_count" ? integer(0) : text_schema();
  });
  return {{"anyOf", Json::array({map, one_of(config::kErrorModes)})}};
}

/// The stage of one op: the keys of every stage and the op's own.
Json stage_schema(const OpEntry& entry) {
  std::vector<std::string> names = {std::string(entry.def.name)};
  if (!entry.def.alias.empty()) names.emplace_back(entry.def.alias);
  Json stage = object_schema(config::stage_keys(), [&](std::string_view key) {
    if (key == "op") return one_of(names);
    return key == "device" ? device_schema() : fields_schema();
  });
  for (const Setting& setting : settings_of(entry.def)) {
    std::vector<std::string_view> aliases;
    if (!setting.field.alias.empty()) aliases.push_back(setting.field.alias);
    add_names(stage["properties"], setting.field.name, aliases, setting_schema(setting));
    if (setting.field.required) stage["required"].push_back(setting.field.name);
  }
  stage["description"] = entry.def.summary;
  return stage;
}

/// By the op's name, so that an editor tells of the one op that is meant and not of all.
Json stages_schema() {
  std::vector<std::string> names;
  Json cases = Json::array();
  for (const OpEntry& entry : registry()) {
    const Json stage = stage_schema(entry);
    const Json& op = stage["properties"]["op"];
    for (const auto& name : op["enum"])
      names.push_back(name);
    cases.push_back(
        {{"if", {{"properties", {{"op", {{"enum", op["enum"]}}}}}, {"required", {"op"}}}},
         {"then", stage}});
  }
  const Json item = {{"type", "object"},
                     {"properties", {{"op", one_of(names)}}},
                     {"required", Json::array({"op"})},
                     {"allOf", cases}};
  return {{"type", Json::array({"array", "null"})}, {"items", item}};
}

}  // namespace

std::string schema_json() {
  Json schema = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                 {"title", "Forebay pipeline"}};
  schema.update(object_schema(config::pipeline_keys(), [](std::string_view key) -> Json {
    if (key == "version") return {{"const", 1}};
    if (key == "batch_size") return integer(1);
    if (key == "seed" || key == "device_id") return integer(0);
    if (key == "num_threads") return integer(0, 4096);
    if (key == "prefetch_queue_depth") return integer(1, 1024);
    if (key == "max_held_batches") return integer(1, 65536);
    if (key == "device") return device_schema();
    if (key == "last_batch_policy") return one_of(config::kLastBatchPolicies);
    if (key == "drop_last" || key == "fuse") return {{"type", "boolean"}};
    if (key == "source") return source_schema();
    if (key == "shuffle") return shuffle_schema();
    if (key == "sampling") return sampling_schema();
    if (key == "subset") return subset_schema();
    if (key == "split") return split_schema();
    if (key == "shard") return shard_schema();
    if (key == "checks") return checks_schema();
    if (key == "on_error") return on_error_schema();
    if (key == "stages") return stages_schema();
    if (key == "output") return fields_schema();
    return {{"type", "string"}};
  }));
  return schema.dump(2) + "\n";
}

int schema(const Arguments&) {
  fmt::print("{}", schema_json());
  return kOk;
}

std::string to_json(const RunReport& report) {
  const Stats& stats = report.stats;
  Json steps = Json::array();
  for (const Stats::Step& step : stats.steps) {
    steps.push_back({{"label", step.label}, {"runs", step.runs}, {"total_ms", step.total_ms}});
  }
  Json first_bad = Json::array();
  for (const BadSample& bad : stats.first_bad)
    first_bad.push_back({{"source", bad.source}, {"index", bad.index}, {"reason", bad.reason}});
  const Json json = {{"pipeline", report.pipeline},
                     {"device", report.device},
                     {"epochs", report.epochs},
                     {"batches", stats.batches},
                     {"samples", stats.samples},
                     {"on_error", report.on_error},
                     {"bad_samples", stats.bad_samples},
                     {"first_bad_samples", first_bad},
                     {"seconds", report.seconds},
                     {"samples_per_second", report.samples_per_second()},
                     {"wait_share", report.wait_share()},
                     {"first_batch_ms", report.first_batch_ms},
                     {"wait_ms", stats.wait_ms},
                     {"read_ms", stats.read_ms},
                     {"blocked_ms", stats.blocked_ms},
                     {"copied_bytes", stats.copied_bytes},
                     {"returned_bytes", stats.returned_bytes},
                     {"slots", stats.slots},
                     {"files", report.files},
                     {"steps", steps}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace forebay::cli
