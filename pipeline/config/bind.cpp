#include <forebay/pipeline/config/bind.h>

#include <limits>

#include <forebay/array/require.h>
#include <forebay/ops/registry.h>
#include <forebay/pipeline/config/bind_on_error.h>
#include <forebay/pipeline/config/bind_order.h>
#include <forebay/pipeline/config/bind_source.h>
#include <forebay/pipeline/config/keys.h>
#include <forebay/pipeline/config/map_reader.h>
#include <forebay/pipeline/config/references.h>
#include <forebay/pipeline/config/scalar.h>
#include <forebay/pipeline/config/settings.h>

namespace forebay::config {
namespace {

constexpr std::int64_t kMaxInt64 = std::numeric_limits<std::int64_t>::max();

/// The device that a `device:` names; no value for auto, and for a mistake.
std::optional<Device> read_device(MapReader& reader, Presence presence) {
  const Node* node = reader.find("device");
  if (node == nullptr || (node->kind == Node::Kind::scalar && node->text == "auto"))
    return std::nullopt;
  try {
    return device_from_name(node->kind == Node::Kind::scalar ? node->text.c_str() : "", presence);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::invalid) {
      reader.wrong("device", *node, "it must be auto, cpu, cuda or cuda:N");
    } else {
      reader.mistake(node->position, error.what());
    }
    return std::nullopt;
  }
}

class PipelineBinder {
 public:
  PipelineBinder(const Node& root, const std::string& folder, const LoadOptions& options,
                 Report& report)
      : folder_(folder),
        options_(options),
        report_(report),
        reader_(root, MapReader::names(pipeline_keys()), "", report) {
    spec_.position = root.position;
  }

  Bound bind() {
    bind_version();
    bind_numbers();
    bind_device();
    const std::size_t before = report_.mistakes();
    bind_order(reader_, folder_, spec_);
    if (reader_.require("batch_size", "an integer, at least 1") != nullptr) {
      spec_.batch_size_position = reader_.find("batch_size")->position;
      reader_.read_integer("batch_size", spec_.batch_size, 1, kMaxInt64);
    }
    bind_source(reader_, folder_, spec_);
    bind_on_error(reader_, folder_, spec_);
    bind_stages();
    if (!options_.stages) bind_output();
    return {std::move(spec_), report_.mistakes() == before};
  }

 private:
  void bind_output() {
    if (const Node* output = reader_.find("output")) spec_.output_position = output->position;
    reader_.read_words("output", spec_.output);
  }

  void bind_version() {
    std::int64_t version = 1;
    if (reader_.require("version", "1") == nullptr || !reader_.read_into("version", version) ||
        version == 1)
      return;
    reader_.wrong("version", *reader_.find("version"), "it must be 1");
  }

  void bind_numbers() {
    reader_.read_into("name", spec_.name);
    bind_seed();
    bind_int("num_threads", spec_.num_threads, 0, 4096);
    bind_int("prefetch_queue_depth", spec_.prefetch_queue_depth, 1, 1024);
    bind_int("max_held_batches", spec_.max_held_batches, 1, 65536);
    reader_.read_into("fuse", spec_.fuse);
  }

  /// The whole range of u64, which read_integer does not have.
  void bind_seed() {
    const Node* node = reader_.find("seed");
    if (node == nullptr) return;
    Number seed;
    const bool read = config::read(*node, seed).empty();
    if (!read || !seed.is_integer() || (seed.kind() == Number::Kind::i64 && seed.i64() < 0)) {
      return reader_.wrong("seed", *node, "it must be an integer of at least 0");
    }
    spec_.seed =
        seed.kind() == Number::Kind::u64 ? seed.u64() : static_cast<std::uint64_t>(seed.i64());
  }

  void bind_int(std::string_view name, int& value, int low, int high) {
    std::int64_t wide = value;
    if (reader_.read_integer(name, wide, low, high)) value = static_cast<int>(wide);
  }

  void bind_device() {
    const auto& device = options_.device;
    const Presence presence = device ? Presence::not_needed : options_.presence;
    spec_.device = read_device(reader_, presence);
    if (const Node* node = reader_.find("device_id")) {
      std::int64_t index = 0;
      if (reader_.find("device") != nullptr) {
        reader_.mistake(node->position,
                        "`device_id` and `device` say the same thing; keep `device`.");
      } else if (reader_.read_integer("device_id", index, 0, 1023)) {
        const std::string name = fmt::format("cuda:{}", index);
        report_.note(node->position,
                     fmt::format("`device_id: {}` is `device: {}` here.", index, name));
        spec_.device = Device::cuda(static_cast<int>(index));
        require_device(*node, name, presence);
      }
    }
    if (device) spec_.device = device;
  }

  void require_device(const Node& node, const std::string& name, Presence presence) {
    try {
      device_from_name(name.c_str(), presence);
    } catch (const Error& error) {
      reader_.mistake(node.position, error.what());
    }
  }

  void bind_stages() {
    const Node* node = reader_.find("stages");
    if (node == nullptr || node->kind == Node::Kind::null) return;
    if (node->kind != Node::Kind::sequence) {
      return reader_.wrong("stages", *node,
                           "it must be a list of maps such as {op: clip, min: -3, max: 3}");
    }
    const auto count = static_cast<std::int64_t>(node->items.size());
    const std::int64_t wanted = options_.stages.value_or(count);
    if (wanted > count)
      reader_.mistake(
          node->position,
          fmt::format("the first {} stages were asked for, but it has {}.", wanted, count));
    for (const Node& item : node->items) {
      const int number = static_cast<int>(&item - node->items.data()) + 1;
      if (number > wanted) break;
      if (auto stage = bind_stage(item, number, folder_, options_.presence, report_))
        spec_.stages.push_back(std::move(*stage));
    }
  }

  const std::string& folder_;
  const LoadOptions& options_;
  Report& report_;
  MapReader reader_;
  Spec spec_;
};

/// Null and a mistake when there is no such op.
const OpEntry* find_stage_op(const Node& node, const std::string& title, Report& report) {
  if (node.kind != Node::Kind::map) {
    report.mistake(node.position,
                   fmt::format("{} is {}; it must be a map such as {{op: clip, min: -3, max: 3}}.",
                               title, node.describe()));
    return nullptr;
  }
  const Node::Entry* given = node.find("op");
  if (given == nullptr) {
    report.mistake(node.position, title + ": `op` is missing; it must be the name of an op.");
    return nullptr;
  }
  if (given->value.kind != Node::Kind::scalar) {
    report.mistake(given->value.position,
                   fmt::format("{}: `op` is {}; it must be the name of an op.", title,
                               given->value.describe()));
    return nullptr;
  }
  try {
    const OpEntry& entry = find_op(given->value.text);
    if (entry.def.name != given->value.text) {
      report.note(given->value.position, fmt::format("{}: op `{}` is called `{}` here.", title,
                                                     given->value.text, entry.def.name));
    }
    return &entry;
  } catch (const Error& error) {
    report.mistake(given->value.position, title + ": " + error.what());
    return nullptr;
  }
}

}  // namespace

std::optional<StageSpec> bind_stage(const Node& node, int number, const std::string& folder,
                                    Presence presence, Report& report) {
  const std::size_t before = report.mistakes();
  const std::string title = fmt::format("stage {}", number);
  const OpEntry* entry = find_stage_op(node, title, report);
  if (entry == nullptr) return std::nullopt;
  std::vector<MapReader::Name> names = setting_names(entry->def);
  for (auto& name : MapReader::names(stage_keys()))
    names.push_back(std::move(name));
  const std::string prefix = fmt::format("{} ({}): ", title, entry->def.name);
  References references(folder);
  const Node resolved = with_statistics(node, entry->def, prefix, references, report);
  if (report.mistakes() != before) return std::nullopt;
  MapReader reader(resolved, std::move(names), prefix, report);

  StageSpec stage{.op = Op(*entry, bind_settings(entry->def, reader, folder)),
                  .inputs = {},
                  .outputs = {},
                  .device = read_device(reader, presence),
                  .position = node.position};
  reader.read_words("inputs", stage.inputs);
  reader.read_words("outputs", stage.outputs);
  if (report.mistakes() != before) return std::nullopt;
  return stage;
}

Bound bind_pipeline(const Node& root, const std::string& folder, const LoadOptions& options,
                    Report& report) {
  if (root.kind != Node::Kind::map) {
    report.mistake(root.position,
                   fmt::format("the file holds {}; it must be a map that starts with `version: 1`.",
                               root.describe()));
    return {};
  }
  return PipelineBinder(root, folder, options, report).bind();
}

}  // namespace forebay::config
