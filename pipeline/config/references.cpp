#include <forebay/pipeline/config/references.h>

#include <algorithm>
#include <filesystem>

#include <forebay/array/require.h>
#include <forebay/ops/registry.h>
#include <forebay/pipeline/config/scalar.h>
#include <forebay/pipeline/config/settings.h>
#include <forebay/pipeline/config/text_file.h>
#include <forebay/pipeline/fit.h>

namespace forebay::config {
namespace {

/// Lists the settings that are numbers or lists of them, by every name.
class NumberLister final : public FieldVisitor {
 public:
  std::vector<std::string_view> names;

  void on(const Field&, bool&) override {}
  void on(const Field& field, std::int64_t&) override { add(field); }
  void on(const Field& field, double&) override { add(field); }
  void on(const Field& field, Number&) override { add(field); }
  void on(const Field&, Dtype&) override {}
  void on(const Field&, std::string&) override {}
  void on(const Field& field, std::vector<std::int64_t>&) override { add(field); }
  void on(const Field& field, Reals&) override { add(field); }
  void on(const Field&, ConstantArray&) override {}
  void on_choice(const Field&, int&, std::span<const std::string_view>) override {}

 private:
  bool visit_optional(const Field&, bool) override { return true; }
  void add(const Field& field) { names.insert(names.end(), {field.name, field.alias}); }
};

void move_to(Node& node, const Position& position) {
  node.position = position;
  for (Node& item : node.items)
    move_to(item, position);
}

/// The value at `path` below `node`: names of maps with a point between; names may have points, too.
const Node* find_path(const Node& node, std::string_view path) {
  for (const Node::Entry& entry : node.entries) {
    if (path == entry.key) return &entry.value;
    if (path.starts_with(entry.key) && path[entry.key.size()] == '.') {
      if (const Node* found = find_path(entry.value, path.substr(entry.key.size() + 1)))
        return found;
    }
  }
  return nullptr;
}

/// Says which part of `path` is not there.
[[noreturn]] void fail_path(const Node& root, const std::string& file, std::string_view path) {
  const Node* node = &root;
  std::string_view rest = path;
  std::string before;
  for (bool deeper = true; deeper;) {
    deeper = false;
    for (const Node::Entry& entry : node->entries) {
      if (!rest.starts_with(entry.key) || rest.size() <= entry.key.size() ||
          rest[entry.key.size()] != '.')
        continue;
      before += entry.key + ".";
      rest.remove_prefix(entry.key.size() + 1);
      node = &entry.value;
      deeper = true;
      break;
    }
  }
  std::vector<std::string_view> names;
  std::string all;
  for (const Node::Entry& entry : node->entries) {
    names.push_back(entry.key);
    all += fmt::format("{}`{}`", all.empty() ? "" : ", ", entry.key);
  }
  const std::string_view nearest = nearest_name(rest.substr(0, rest.find('.')), names);
  fail(ErrorKind::invalid, "{} has no `{}{}`; {}", file, before, rest,
       !nearest.empty() ? fmt::format("did you mean `{}{}`?", before, nearest)
       : all.empty()    ? "it has nothing there."
                        : fmt::format("there are {}.", all));
}

}  // namespace

bool References::is_reference(const Node& node) {
  const std::size_t mark = node.kind == Node::Kind::scalar ? node.text.find('#') : 0;
  return mark != 0 && mark != std::string::npos && mark + 1 < node.text.size();
}

Node References::resolve(const Node& reference) {
  const std::size_t mark = reference.text.find('#');
  const std::string file = reference.text.substr(0, mark);
  const std::string_view path = std::string_view(reference.text).substr(mark + 1);
  const std::string place = resolve_path(folder_, file);
  auto found = files_.find(place);
  if (found == files_.end()) {
    FOREBAY_REQUIRE(std::filesystem::exists(place), io,
                    "{} is not there; `forebay fit FILE -o {}` writes it.", file, file);
    found = files_.emplace(place, parse_yaml(text_of_file(place), place)).first;
  }
  FOREBAY_REQUIRE(found->second.kind == Node::Kind::map, invalid,
                  "{} holds {}; it must be what `forebay fit` writes.", file,
                  found->second.describe());
  const Node* value = find_path(found->second, path);
  if (value == nullptr) fail_path(found->second, file, path);
  Node copy = *value;
  move_to(copy, reference.position);
  return copy;
}

Node with_statistics(const Node& stage, const OpDef& def, const std::string& title,
                     References& references, Report& report) {
  NumberLister numbers;
  def.fields(def.make().get(), numbers);
  Node result = stage;
  for (Node::Entry& entry : result.entries) {
    if (std::find(numbers.names.begin(), numbers.names.end(), entry.key) == numbers.names.end())
      continue;
    const auto replace = [&](Node& node) {
      if (!References::is_reference(node)) return;
      try {
        node = references.resolve(node);
      } catch (const Error& error) {
        report.mistake(node.position, fmt::format("{}`{}`: {}", title, entry.key, error.what()));
      }
    };
    if (entry.value.kind != Node::Kind::sequence) {
      replace(entry.value);
      continue;
    }
    for (Node& item : entry.value.items)
      replace(item);
  }
  return result;
}

}  // namespace forebay::config

namespace forebay {

Reals read_statistic(const std::string& reference) {
  using config::Node;
  Node node;
  node.kind = Node::Kind::scalar;
  node.text = reference;
  FOREBAY_REQUIRE(config::References::is_reference(node), invalid,
                  "`{}` is no reference; it must be as `stats.yaml#image.mean`.", reference);
  const Node found = config::References("").resolve(node);
  Reals reals;
  const auto add = [&](const Node& item) {
    double value = 0;
    FOREBAY_REQUIRE(config::read(item, value).empty(), invalid,
                    "`{}` is {}; it must be a number or a list of numbers.", reference,
                    found.describe());
    reals.values.push_back(value);
  };
  if (found.kind == Node::Kind::sequence) {
    for (const Node& item : found.items)
      add(item);
  } else {
    add(found);
  }
  return reals;
}

}  // namespace forebay
