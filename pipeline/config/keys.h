#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace forebay::config {

/// One key of the YAML file, for binding, `explain`, the JSON Schema and the reference page.
struct Key {
  std::string_view name;
  std::string_view type;      ///< "integer, at least 1"
  std::string_view fallback;  ///< its default as text; empty when there is none
  std::string_view doc;       ///< one sentence
  /// Other libraries' names for the same thing, accepted with a note.
  std::vector<std::string_view> aliases = {};
  bool required = false;

  /// As pages and `explain` print it.
  std::string_view default_text() const {
    return required ? "must be given" : fallback.empty() ? "none" : fallback;
  }
};

/// At the top of the file.
std::span<const Key> pipeline_keys();
/// Inside `source:`, `shuffle:` and so on.
std::span<const Key> source_keys();
/// Of every item of `source.sources`.
std::span<const Key> part_keys();
std::span<const Key> shuffle_keys();
std::span<const Key> sampling_keys();
std::span<const Key> split_keys();
std::span<const Key> on_error_keys();
std::span<const Key> check_keys();
std::span<const Key> shard_keys();
/// Of every stage beside its op's settings.
std::span<const Key> stage_keys();

/// A table of keys and where its keys stand: "shuffle." before theirs.
struct Section {
  std::string_view path;
  std::span<const Key> keys;
};
/// All of them, in the order of the reference page; the stages' come last.
std::vector<Section> sections();

inline constexpr std::string_view kLastBatchPolicies[] = {"partial", "drop", "fill"};
inline constexpr std::string_view kShuffleModes[] = {"none", "full", "window"};
inline constexpr std::string_view kSamplingModes[] = {"once", "replacement", "weighted", "mix"};
/// What `sampling.samples` may be beside a number.
inline constexpr std::string_view kStoppingStrategies[] = {"first_exhausted", "all_exhausted"};
inline constexpr std::string_view kSourceTypes[] = {"npy", "concat"};
inline constexpr std::string_view kErrorModes[] = {"fail", "skip", "replace"};
inline constexpr std::string_view kSplitParts[] = {"train", "validation"};

}  // namespace forebay::config
