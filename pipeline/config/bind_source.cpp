#include <forebay/pipeline/config/bind_source.h>

#include <forebay/array/require.h>
#include <forebay/pipeline/config/keys.h>
#include <forebay/pipeline/config/settings.h>
#include <forebay/pipeline/source/parts.h>

namespace forebay::config {
namespace {

constexpr std::string_view kSource = "a map such as {type: npy, columns: {x: data/x.npy}}";
constexpr std::string_view kColumns = "a map of fields to .npy files, {x: data/x.npy}";
constexpr std::string_view kSources =
    "a list of maps such as {name: a, type: npy, columns: {x: data/x.npy}}";

class SourceBinder {
 public:
  SourceBinder(const std::string& folder, Report& report) : folder_(folder), report_(report) {}

  /// Null when something was wrong.
  SourcePtr bind(const Node& node) {
    MapReader reader(node, MapReader::names(source_keys()), "source: ", report_);
    int type = 0;
    if (reader.require("type", alternatives(kSourceTypes)) != nullptr)
      reader.read_choice("type", type, kSourceTypes);
    if (type == 1) return bind_concat(reader);
    for (const char* name : {"sources", "source_field"}) {
      if (const Node* given = reader.find(name))
        reader.mistake(given->position,
                       fmt::format("`{}` is for type concat; leave it out.", name));
    }
    return bind_npy(reader);
  }

 private:
  SourcePtr bind_npy(MapReader& reader) {
    const Node* columns = reader.require("columns", kColumns);
    if (columns == nullptr) return nullptr;
    if (columns->kind != Node::Kind::map || columns->entries.empty()) {
      reader.wrong("columns", *columns, fmt::format("it must be {}", kColumns));
      return nullptr;
    }
    return open_columns(reader, *columns);
  }

  /// Each file on its own first, so that everything that is wrong with any of them is said.
  SourcePtr open_columns(MapReader& source, const Node& columns) {
    const std::size_t before = report_.mistakes();
    std::vector<std::pair<std::string, std::string>> files;
    for (const Node::Entry& column : columns.entries) {
      if (column.value.kind != Node::Kind::scalar || column.value.text.empty()) {
        source.wrong("columns." + column.key, column.value, "it must be the path of a .npy file");
        continue;
      }
      files.emplace_back(column.key, resolve_path(folder_, column.value.text));
      try {
        npy_source({files.back()});
      } catch (const Error& error) {
        source.mistake(column.value.position,
                       fmt::format("column `{}`: {}", column.key, error.what()));
      }
    }
    if (report_.mistakes() != before) return nullptr;
    try {
      return npy_source(files);
    } catch (const Error& error) {
      source.mistake(columns.position, error.what());
      return nullptr;
    }
  }

  SourcePtr bind_concat(MapReader& reader) {
    const std::size_t before = report_.mistakes();
    if (const Node* columns = reader.find("columns"))
      reader.mistake(columns->position, "`columns` is for type npy; name those of each source.");
    std::string field;
    reader.read_into("source_field", field);
    const Node* sources = reader.require("sources", kSources);
    if (sources == nullptr) return nullptr;
    if (sources->kind != Node::Kind::sequence || sources->items.empty()) {
      reader.wrong("sources", *sources, fmt::format("it must be {}", kSources));
      return nullptr;
    }
    std::vector<SourcePart> parts;
    for (const Node& item : sources->items)
      bind_part(reader, item, parts);
    if (report_.mistakes() != before) return nullptr;
    try {
      return concat_source(std::move(parts), field);
    } catch (const Error& error) {
      const Node* named = reader.find("source_field");
      reader.mistake(named != nullptr ? named->position : sources->position, error.what());
      return nullptr;
    }
  }

  /// Adds the source of one item, unless something is wrong with it.
  void bind_part(MapReader& sources, const Node& item, std::vector<SourcePart>& parts) {
    if (item.kind != Node::Kind::map)
      return sources.wrong("sources", item, fmt::format("it must be {}", kSources));
    const Node::Entry* named = item.find("name");
    const bool has_name = named != nullptr && named->value.kind == Node::Kind::scalar;
    const std::string title =
        has_name ? fmt::format("source `{}`: ", named->value.text) : "source: ";
    MapReader reader(item, MapReader::names(part_keys()), title, report_);
    std::string name;
    int type = 0;
    if (reader.require("name", "text") != nullptr && reader.read_into("name", name) && name.empty())
      reader.wrong("name", named->value, "it must be text");
    for (const SourcePart& part : parts) {
      if (part.name == name)
        reader.mistake(named->value.position, "another source has this name; names must differ.");
    }
    if (reader.require("type", "npy") != nullptr)
      reader.read_choice("type", type, std::span(kSourceTypes).first(1));
    SourcePart part{.name = name, .source = bind_npy(reader)};
    if (part.source == nullptr) return;
    if (!parts.empty()) {
      for (const std::string& mistake : column_mistakes(parts.front(), part))
        report_.mistake(reader.find("columns")->position, "source: " + mistake);
    }
    parts.push_back(std::move(part));
  }

  const std::string& folder_;
  Report& report_;
};

}  // namespace

void bind_source(MapReader& reader, const std::string& folder, Spec& spec) {
  const Node* node = reader.require("source", kSource);
  if (node == nullptr) return;
  spec.source_position = node->position;
  if (node->kind != Node::Kind::map)
    return reader.wrong("source", *node, fmt::format("it must be {}", kSource));
  spec.source = SourceBinder(folder, reader.report()).bind(*node);
}

}  // namespace forebay::config
