#include <forebay/pipeline/config/map_reader.h>

#include <algorithm>
#include <limits>

#include <forebay/array/require.h>
#include <forebay/ops/registry.h>
#include <forebay/pipeline/config/scalar.h>

namespace forebay::config {

std::string alternatives(std::span<const std::string_view> choices) {
  std::string text;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    text += i == 0 ? "" : i + 1 == choices.size() ? " or " : ", ";
    text += choices[i];
  }
  return text;
}

std::vector<MapReader::Name> MapReader::names(std::span<const Key> keys) {
  std::vector<Name> names;
  for (const Key& key : keys)
    names.push_back({key.name, key.aliases});
  return names;
}

MapReader::MapReader(const Node& map, std::vector<Name> names, std::string title, Report& report)
    : names_(std::move(names)), title_(std::move(title)), report_(report), position_(map.position) {
  for (const Node::Entry& entry : map.entries)
    match(entry);
}

void MapReader::match(const Node::Entry& entry) {
  std::vector<std::string_view> known;
  for (const Name& name : names_) {
    known.push_back(name.name);
    const bool alias =
        std::find(name.aliases.begin(), name.aliases.end(), entry.key) != name.aliases.end();
    if (name.name != entry.key && !alias) continue;
    if (find(name.name) != nullptr) {
      return mistake(entry.position, fmt::format("`{}` is there twice, under two names; keep `{}`.",
                                                 name.name, name.name));
    }
    if (alias)
      report_.note(entry.position,
                   fmt::format("{}`{}` is called `{}` here.", title_, entry.key, name.name));
    given_.emplace_back(name.name, &entry.value);
    return;
  }
  const std::string_view nearest = nearest_name(entry.key, known);
  mistake(entry.position,
          nearest.empty()
              ? fmt::format("unknown key `{}`; it must be {}.", entry.key, alternatives(known))
              : fmt::format("unknown key `{}`; did you mean `{}`?", entry.key, nearest));
}

const Node* MapReader::find(std::string_view name) const {
  for (const auto& [key, value] : given_) {
    if (key == name) return value;
  }
  return nullptr;
}

const Node* MapReader::require(std::string_view name, std::string_view what) {
  const Node* node = find(name);
  if (node == nullptr)
    mistake(position_, fmt::format("`{}` is missing; it must be {}.", name, what));
  return node;
}

void MapReader::wrong(std::string_view name, const Node& value, std::string_view allowed) {
  mistake(value.position, fmt::format("`{}` is {}; {}.", name, value.describe(), allowed));
}

template <class T>
bool MapReader::read_into(std::string_view name, T& value) {
  const Node* node = find(name);
  if (node == nullptr) return true;
  const std::string problem = read(*node, value);
  if (!problem.empty()) wrong(name, *node, problem);
  return problem.empty();
}
template bool MapReader::read_into(std::string_view, bool&);
template bool MapReader::read_into(std::string_view, std::int64_t&);
template bool MapReader::read_into(std::string_view, double&);
template bool MapReader::read_into(std::string_view, Number&);
template bool MapReader::read_into(std::string_view, std::string&);

bool MapReader::read_integer(std::string_view name, std::int64_t& value, std::int64_t low,
                             std::int64_t high) {
  std::int64_t read_value = value;
  if (!read_into(name, read_value)) return false;
  const Node* node = find(name);
  if (node == nullptr) return true;
  if (read_value < low || read_value > high) {
    wrong(name, *node,
          high == std::numeric_limits<std::int64_t>::max()
              ? fmt::format("it must be at least {}", low)
              : fmt::format("it must be between {} and {}", low, high));
    return false;
  }
  value = read_value;
  return true;
}

bool MapReader::read_choice(std::string_view name, int& index,
                            std::span<const std::string_view> choices) {
  const Node* node = find(name);
  if (node == nullptr) return true;
  const auto found = node->kind == Node::Kind::scalar
                         ? std::find(choices.begin(), choices.end(), node->text)
                         : choices.end();
  if (found == choices.end()) {
    wrong(name, *node, "it must be " + alternatives(choices));
    return false;
  }
  index = static_cast<int>(found - choices.begin());
  return true;
}

bool MapReader::read_words(std::string_view name, std::vector<std::string>& words) {
  const Node* node = find(name);
  if (node == nullptr) return true;
  const auto is_word = [](const Node& item) {
    return item.kind == Node::Kind::scalar && !item.text.empty();
  };
  if (is_word(*node)) {
    words = {node->text};
    return true;
  }
  if (node->kind != Node::Kind::sequence || node->items.empty()) {
    wrong(name, *node, "it must be a name or a list of names");
    return false;
  }
  std::vector<std::string> read_words;
  for (std::size_t i = 0; i < node->items.size(); ++i) {
    if (!is_word(node->items[i])) {
      wrong(fmt::format("{}[{}]", name, i), node->items[i], "it must be a name");
      return false;
    }
    read_words.push_back(node->items[i].text);
  }
  words = std::move(read_words);
  return true;
}

}  // namespace forebay::config
