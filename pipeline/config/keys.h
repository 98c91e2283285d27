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
/// Inside `source:`, inside `shuffle:`, and of every stage beside its op's settings.
std::span<const Key> source_keys();
std::span<const Key> shuffle_keys();
std::span<const Key> stage_keys();

inline constexpr std::string_view kLastBatchPolicies[] = {"partial", "drop", "fill"};
inline constexpr std::string_view kShuffleModes[] = {"none", "full"};

}  // namespace forebay::config
