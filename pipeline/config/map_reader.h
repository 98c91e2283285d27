#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <forebay/pipeline/config/keys.h>
#include <forebay/pipeline/config/node.h>
#include <forebay/pipeline/config/report.h>

namespace forebay::config {

/// Reads the keys of one map; says which are unknown, twice there under two names, or missing.
class MapReader {
 public:
  struct Name {
    std::string_view name;
    std::vector<std::string_view> aliases;
  };
  static std::vector<Name> names(std::span<const Key> keys);

  /// `title` begins every message: empty, or "stage 2 (clip): ".
  MapReader(const Node& map, std::vector<Name> names, std::string title, Report& report);

  /// What was given for the key, by any of its names; null when it was not.
  const Node* find(std::string_view name) const;
  /// The same; a missing key is a mistake.
  const Node* require(std::string_view name, std::string_view what);

  /// "`key` is 3; it must be ..." at the value.
  void wrong(std::string_view name, const Node& value, std::string_view allowed);
  void mistake(const Position& position, const std::string& text) {
    report_.mistake(position, title_ + text);
  }
  Report& report() { return report_; }
  /// Of the map.
  const Position& position() const { return position_; }

  /// Reads a scalar (see scalar.h) when the key was given. False when it was given and is wrong.
  template <class T>
  bool read_into(std::string_view name, T& value);
  /// An integer in low..high.
  bool read_integer(std::string_view name, std::int64_t& value, std::int64_t low,
                    std::int64_t high);
  /// One of `choices`, as its number.
  bool read_choice(std::string_view name, int& index, std::span<const std::string_view> choices);
  /// One word or a list of them.
  bool read_words(std::string_view name, std::vector<std::string>& words);

 private:
  void match(const Node::Entry& entry);

  std::vector<Name> names_;
  std::string title_;
  Report& report_;
  std::vector<std::pair<std::string_view, const Node*>> given_;
  Position position_;
};

/// "a, b or c".
std::string alternatives(std::span<const std::string_view> choices);

}  // namespace forebay::config
