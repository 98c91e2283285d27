#include <forebay/pipeline/config/bind_order.h>

#include <cmath>
#include <cstdlib>
#include <limits>

#include <forebay/array/require.h>
#include <forebay/pipeline/config/keys.h>
#include <forebay/pipeline/config/scalar.h>
#include <forebay/pipeline/config/settings.h>

namespace forebay::config {
namespace {

constexpr std::int64_t kMaxInt64 = std::numeric_limits<std::int64_t>::max();

bool is_word(const Node& node, std::string_view text) {
  return node.kind == Node::Kind::scalar && node.text == text;
}

class OrderBinder {
 public:
  OrderBinder(MapReader& reader, const std::string& folder, Spec& spec)
      : reader_(reader), folder_(folder), spec_(spec) {}

  void bind() {
    bind_last_batch();
    bind_shuffle();
    bind_sampling();
    bind_subset();
    bind_split();
    bind_shard();
  }

 private:
  void bind_last_batch() {
    int policy = static_cast<int>(spec_.last_batch_policy);
    reader_.read_choice("last_batch_policy", policy, kLastBatchPolicies);
    if (const Node* node = reader_.find("drop_last")) {
      bool drop = false;
      if (reader_.find("last_batch_policy") != nullptr) {
        reader_.mistake(
            node->position,
            "`drop_last` and `last_batch_policy` say the same thing; keep `last_batch_policy`.");
      } else if (reader_.read_into("drop_last", drop)) {
        policy = static_cast<int>(drop ? LastBatchPolicy::drop : LastBatchPolicy::partial);
        note(*node, fmt::format("`drop_last: {}` is `last_batch_policy: {}` here.", drop,
                                kLastBatchPolicies[policy]));
      }
    }
    spec_.last_batch_policy = static_cast<LastBatchPolicy>(policy);
  }

  /// A map, or what other loaders take: true and false.
  void bind_shuffle() {
    const Node* node = find("shuffle", spec_.shuffle_position);
    if (node == nullptr) return;
    if (is_word(*node, "true") || is_word(*node, "false")) {
      spec_.shuffle = node->text == "true" ? ShuffleMode::full : ShuffleMode::none;
      return note(*node, fmt::format("`shuffle: {}` is `shuffle: {{mode: {}}}` here.", node->text,
                                     node->text == "true" ? "full" : "none"));
    }
    if (!require_map("shuffle", *node, "{mode: full}")) return;
    MapReader shuffle = inside("shuffle", *node, shuffle_keys());
    read_choice(shuffle, "mode", spec_.shuffle, kShuffleModes);
    const bool windowed = spec_.shuffle == ShuffleMode::window;
    if (windowed ? shuffle.require("window", "an integer, at least 1") != nullptr : true)
      shuffle.read_integer("window", spec_.shuffle_window, 1, kMaxInt64);
  }

  void bind_sampling() {
    const Node* node = find("sampling", spec_.sampling_position);
    if (node == nullptr || !require_map("sampling", *node, "{mode: replacement}")) return;
    MapReader sampling = inside("sampling", *node, sampling_keys());
    read_choice(sampling, "mode", spec_.sampling.mode, kSamplingModes);
    read_samples(sampling);
    read_proportions(sampling);
    if (const Node* weights = sampling.find("weights"))
      spec_.sampling.weights = read_array(sampling, "weights", *weights).value_or(Array());
  }

  /// A number, or for a mix what ends an epoch.
  void read_samples(MapReader& sampling) {
    const Node* node = sampling.find("samples");
    if (node == nullptr) return;
    for (std::size_t i = 0; i < std::size(kStoppingStrategies); ++i) {
      if (is_word(*node, kStoppingStrategies[i])) {
        spec_.sampling.stopping = static_cast<StoppingStrategy>(i + 1);
        return;
      }
    }
    if (spec_.sampling.mode == SamplingMode::mix && !read(*node, spec_.sampling.samples).empty())
      return sampling.wrong(
          "samples", *node,
          fmt::format("it must be an integer, {}", alternatives(kStoppingStrategies)));
    sampling.read_integer("samples", spec_.sampling.samples, 1, kMaxInt64);
  }

  void read_proportions(MapReader& sampling) {
    const Node* node = sampling.find("proportions");
    if (node == nullptr) return;
    if (node->kind != Node::Kind::map || node->entries.empty())
      return sampling.wrong("proportions", *node,
                            "it must be a map of sources to numbers, {a: 0.7, b: 0.3}");
    for (const Node::Entry& entry : node->entries) {
      double proportion = 0;
      std::string problem = read(entry.value, proportion);
      if (problem.empty() && !(std::isfinite(proportion) && proportion >= 0))
        problem = "it must be a finite number of at least 0";
      if (!problem.empty()) sampling.wrong("proportions." + entry.key, entry.value, problem);
      spec_.sampling.proportions.emplace_back(entry.key, proportion);
    }
  }

  void bind_subset() {
    const Node* node = find("subset", spec_.subset_position);
    if (node == nullptr || node->kind == Node::Kind::null) return;
    if (node->kind != Node::Kind::sequence) {
      spec_.subset = read_array(reader_, "subset", *node);
      return;
    }
    std::vector<std::int64_t> indices(node->items.size());
    for (std::size_t i = 0; i < indices.size(); ++i) {
      const std::string problem = read(node->items[i], indices[i]);
      if (!problem.empty())
        return reader_.wrong(fmt::format("subset[{}]", i), node->items[i], problem);
    }
    spec_.subset = Array::from({static_cast<std::int64_t>(indices.size())}, indices);
  }

  void bind_split() {
    const Node* node = find("split", spec_.split_position);
    if (node == nullptr || !require_map("split", *node, "{part: train, validation: 0.1}")) return;
    MapReader reader = inside("split", *node, split_keys());
    Split split;
    std::int64_t seed = 0;
    if (reader.require("part", "train or validation") != nullptr)
      read_choice(reader, "part", split.part, kSplitParts);
    if (reader.require("validation", "a number above 0 and below 1") == nullptr) return;
    if (!reader.read_into("validation", split.validation)) return;
    reader.read_into("by", split.by);
    reader.read_integer("seed", seed, 0, kMaxInt64);
    split.seed = static_cast<std::uint64_t>(seed);
    spec_.split = std::move(split);
  }

  /// A map of two numbers, each of which may be auto; auto stands for a map of both.
  void bind_shard() {
    const Node* node = find("shard", spec_.shard_position);
    if (node == nullptr) return note_unsharded();
    if (is_word(*node, "auto")) {
      from_environment(*node, spec_.shard);
      return;
    }
    if (!require_map("shard", *node, "{shard_id: auto, num_shards: auto}")) return;
    MapReader reader = inside("shard", *node, shard_keys());
    read_shard_number(reader, "shard_id", 0, &Shard::shard_id);
    read_shard_number(reader, "num_shards", 1, &Shard::num_shards);
  }

  void read_shard_number(MapReader& reader, std::string_view name, int least, int Shard::*number) {
    const Node* node = reader.find(name);
    if (node == nullptr || is_word(*node, "auto")) {
      Shard shard;
      const Node& at = node != nullptr ? *node : *reader_.find("shard");
      if (from_environment(at, shard)) spec_.shard.*number = shard.*number;
      return;
    }
    std::int64_t value = 0;
    if (!read(*node, value).empty())
      return reader.wrong(name, *node,
                          fmt::format("it must be auto or an integer of at least {}", least));
    if (reader.read_integer(name, value, least, std::numeric_limits<int>::max()))
      spec_.shard.*number = static_cast<int>(value);
  }

  bool from_environment(const Node& node, Shard& shard) {
    try {
      shard = Shard::from_environment();
      return true;
    } catch (const Error& error) {
      reader_.mistake(node.position, fmt::format("shard: auto: {}", error.what()));
      return false;
    }
  }

  /// Training on several ranks that all see every sample is legal, and seldom what was meant.
  void note_unsharded() {
    const char* world = std::getenv("WORLD_SIZE");
    if (world == nullptr || std::string_view(world) == "1") return;
    reader_.report().note(reader_.position(),
                          fmt::format("WORLD_SIZE is {}, but without `shard: auto` every process "
                                      "gets all samples.",
                                      world));
  }

  const Node* find(std::string_view name, Position& position) {
    const Node* node = reader_.find(name);
    if (node != nullptr) position = node->position;
    return node;
  }

  bool require_map(std::string_view name, const Node& node, std::string_view example) {
    if (node.kind == Node::Kind::map) return true;
    reader_.wrong(name, node, fmt::format("it must be a map such as {}", example));
    return false;
  }

  MapReader inside(std::string_view name, const Node& node, std::span<const Key> keys) {
    return {node, MapReader::names(keys), fmt::format("{}: ", name), reader_.report()};
  }

  template <class E>
  void read_choice(MapReader& reader, std::string_view name, E& value,
                   std::span<const std::string_view> choices) {
    int index = static_cast<int>(value);
    reader.read_choice(name, index, choices);
    value = static_cast<E>(index);
  }

  std::optional<Array> read_array(MapReader& reader, std::string_view name, const Node& node) {
    if (node.kind != Node::Kind::scalar || node.text.empty()) {
      reader.wrong(name, node,
                   name == "subset" ? "it must be a list of integers or the path of a .npy file"
                                    : "it must be the path of a .npy file");
      return std::nullopt;
    }
    try {
      return read_npy(resolve_path(folder_, node.text));
    } catch (const Error& error) {
      reader.mistake(node.position, fmt::format("`{}`: {}", name, error.what()));
      return std::nullopt;
    }
  }

  void note(const Node& node, const std::string& text) {
    reader_.report().note(node.position, text);
  }

  MapReader& reader_;
  const std::string& folder_;
  Spec& spec_;
};

}  // namespace

void bind_order(MapReader& reader, const std::string& folder, Spec& spec) {
  OrderBinder(reader, folder, spec).bind();
}

}  // namespace forebay::config
