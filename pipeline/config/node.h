#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <forebay/pipeline/spec.h>

namespace forebay::config {

/// A value of a configuration file and where it was written. Knows nothing of the format it came
/// from.
struct Node {
  enum class Kind : std::uint8_t { null, scalar, sequence, map };
  struct Entry;

  Kind kind = Kind::null;
  Position position;
  std::string text;            ///< scalar
  bool quoted = false;         ///< scalar: certainly text, so that "3" is no number
  std::vector<Node> items;     ///< sequence
  std::vector<Entry> entries;  ///< map, in the order of the file; keys differ

  const Entry* find(std::string_view key) const;
  /// As in an error: `3`, `"3"`, "nothing", "a list", "a map".
  std::string describe() const;
};

struct Node::Entry {
  std::string key;
  Position position;  ///< of the key
  Node value;
};

/// The one document of `text`. `file` stands in the positions.
/// Errors: invalid with the position, for bad syntax, a key that is there twice, keys that are not
/// scalars, several documents, and aliases that unfold to more than 100000 values.
Node parse_yaml(const std::string& text, const std::string& file);

}  // namespace forebay::config
