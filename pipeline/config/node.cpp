#include <forebay/pipeline/config/node.h>

namespace forebay::config {

const Node::Entry* Node::find(std::string_view key) const {
  for (const Entry& entry : entries) {
    if (entry.key == key) return &entry;
  }
  return nullptr;
}

std::string Node::describe() const {
  switch (kind) {
    case Kind::null:
      return "nothing";
    case Kind::sequence:
      return "a list";
    case Kind::map:
      return "a map";
    case Kind::scalar:
      break;
  }
  return quoted ? "\"" + text + "\"" : text;
}

}  // namespace forebay::config
