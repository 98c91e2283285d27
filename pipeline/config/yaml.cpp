// The only file that knows yaml-cpp. It is driven by events, since its own tree keeps the last of
// two equal keys in silence and forgets which scalars were quoted.
#include <map>
#include <optional>
#include <sstream>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <forebay/array/require.h>
#include <forebay/pipeline/config/node.h>

namespace forebay::config {
namespace {

constexpr std::size_t kMaxNodes = 100000;

class TreeBuilder final : public YAML::EventHandler {
 public:
  explicit TreeBuilder(const std::string& file) : file_(file) {}

  std::optional<Node> take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    leaf(node(Node::Kind::null, mark), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end())
      refuse(at(mark), "an alias stands inside the value that it names.");
    count_ += found->second.size - 1;
    leaf(found->second.node, YAML::NullAnchor, at(mark));
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    const bool quoted = tag == "!";
    // yaml-cpp reports `~` and an empty value as OnNull, the other spellings as scalars.
    const bool null = !quoted && (value == "null" || value == "Null" || value == "NULL");
    Node scalar = node(null ? Node::Kind::null : Node::Kind::scalar, mark);
    if (!null) scalar.text = value;
    scalar.quoted = quoted;
    leaf(std::move(scalar), anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(node(Node::Kind::sequence, mark), anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(node(Node::Kind::map, mark), anchor);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Level {
    Node node;
    YAML::anchor_t anchor;
    std::size_t count_before;
    std::optional<Node> key;
  };
  struct Anchored {
    Node node;
    std::size_t size;  ///< nodes in it
  };

  [[noreturn]] static void refuse(const Position& position, const std::string& text) {
    fail(ErrorKind::invalid, "{}: {}", to_string(position), text);
  }

  Position at(const YAML::Mark& mark) const { return {file_, mark.line + 1, mark.column + 1}; }

  Node node(Node::Kind kind, const YAML::Mark& mark) const {
    Node made;
    made.kind = kind;
    made.position = at(mark);
    return made;
  }

  void count(const Position& position) {
    if (++count_ > kMaxNodes)
      refuse(position, fmt::format("the file has more than {} values.", kMaxNodes));
  }

  void open(Node value, YAML::anchor_t anchor) {
    require_scalar_key(value, value.position);
    count(value.position);
    levels_.push_back({std::move(value), anchor, count_, std::nullopt});
  }

  void close() {
    Level level = std::move(levels_.back());
    levels_.pop_back();
    merge_base(level.node);
    if (level.anchor != YAML::NullAnchor)
      anchors_[level.anchor] = {level.node, count_ - level.count_before + 1};
    place(std::move(level.node), {});
  }

  /// `<<: *base` gives a map the entries of another that it does not have itself.
  static void merge_base(Node& map) {
    const Node::Entry* found = map.find("<<");
    if (found == nullptr || found->value.kind != Node::Kind::map) return;
    const Node base = found->value;
    map.entries.erase(map.entries.begin() + (found - map.entries.data()));
    for (const Node::Entry& entry : base.entries) {
      if (map.find(entry.key) == nullptr) map.entries.push_back(entry);
    }
  }

  void leaf(Node value, YAML::anchor_t anchor, const Position& alias = {}) {
    const Position& position = alias.file.empty() ? value.position : alias;
    require_scalar_key(value, position);
    count(position);
    if (anchor != YAML::NullAnchor) anchors_[anchor] = {value, 1};
    place(std::move(value), alias);
  }

  bool key_is_next() const {
    return !levels_.empty() && levels_.back().node.kind == Node::Kind::map && !levels_.back().key;
  }

  void require_scalar_key(const Node& value, const Position& position) const {
    if (key_is_next() && value.kind != Node::Kind::scalar) {
      refuse(position, fmt::format("a key is {}; keys are words.", value.describe()));
    }
  }

  /// `alias`: where an alias stands for the value, for a key.
  void place(Node value, const Position& alias) {
    if (levels_.empty()) {
      root_ = std::move(value);
      return;
    }
    Level& level = levels_.back();
    if (level.node.kind == Node::Kind::sequence) {
      level.node.items.push_back(std::move(value));
    } else if (key_is_next()) {
      if (!alias.file.empty()) value.position = alias;
      if (const Node::Entry* first = level.node.find(value.text)) {
        refuse(value.position, fmt::format("the key `{}` is here twice; the first is on line {}.",
                                           value.text, first->position.line));
      }
      level.key = std::move(value);
    } else {
      level.node.entries.push_back(
          {std::move(level.key->text), level.key->position, std::move(value)});
      level.key.reset();
    }
  }

  const std::string& file_;
  std::optional<Node> root_;
  std::vector<Level> levels_;
  std::map<YAML::anchor_t, Anchored> anchors_;
  std::size_t count_ = 0;
};

/// yaml-cpp blames whatever follows a tab; the tab itself is what the user has to find.
std::optional<Position> tab_in_indentation(const std::string& text, const std::string& file,
                                           int last_line) {
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; number <= last_line && std::getline(lines, line); ++number) {
    const std::size_t blank = line.find_first_not_of(' ');
    if (blank != std::string::npos && line[blank] == '\t')
      return Position{file, number, static_cast<int>(blank) + 1};
  }
  return std::nullopt;
}

}  // namespace

Node parse_yaml(const std::string& text, const std::string& file) {
  TreeBuilder builder(file);
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    parser.HandleNextDocument(builder);
    std::optional<Node> root = builder.take();
    if (!root) {
      root.emplace();
      root->position = {file, 1, 1};
      return std::move(*root);
    }
    if (parser.HandleNextDocument(builder)) {
      const std::optional<Node> second = builder.take();
      fail(ErrorKind::invalid, "{}: a second document begins here; a file holds one.",
           to_string(second ? second->position : root->position));
    }
    return std::move(*root);
  } catch (const YAML::Exception& error) {
    const int line = error.mark.line + 1;
    if (const auto tab = tab_in_indentation(text, file, line)) {
      fail(ErrorKind::invalid, "{}: a tab in the indentation; YAML allows spaces only.",
           to_string(*tab));
    }
    fail(ErrorKind::invalid, "{}: bad YAML: {}.",
         to_string(Position{file, line, error.mark.column + 1}), error.msg);
  }
}

}  // namespace forebay::config
