#include <forebay/pipeline/config/settings.h>

#include <filesystem>
#include <limits>

#include <forebay/array/require.h>
#include <forebay/ops/visitors.h>
#include <forebay/pipeline/config/scalar.h>
#include <forebay/pipeline/source.h>

namespace forebay::config {
namespace {

/// Lists what the fields are called; changes no setting.
class NameLister final : public FieldVisitor {
 public:
  std::vector<MapReader::Name> names;

  void on(const Field& field, bool&) override { add(field); }
  void on(const Field& field, std::int64_t&) override { add(field); }
  void on(const Field& field, double&) override { add(field); }
  void on(const Field& field, Number&) override { add(field); }
  void on(const Field& field, Dtype&) override { add(field); }
  void on(const Field& field, std::string&) override { add(field); }
  void on(const Field& field, std::vector<std::int64_t>&) override { add(field); }
  void on(const Field& field, Reals&) override { add(field); }
  void on(const Field& field, ConstantArray&) override { add(field); }
  void on_choice(const Field& field, int&, std::span<const std::string_view>) override {
    add(field);
  }

 private:
  bool visit_optional(const Field& field, bool) override {
    add(field);
    return false;
  }
  void add(const Field& field) {
    MapReader::Name name{field.name, {}};
    if (!field.alias.empty()) name.aliases.push_back(field.alias);
    names.push_back(std::move(name));
  }
};

/// Sets what the stage gives; leaves the rest at its default.
class SettingsReader final : public FieldVisitor {
 public:
  SettingsReader(MapReader& reader, const std::string& folder) : reader_(reader), folder_(folder) {}

  void on(const Field& field, bool& value) override { scalar(field, value); }
  void on(const Field& field, std::int64_t& value) override { scalar(field, value); }
  void on(const Field& field, double& value) override { scalar(field, value); }
  void on(const Field& field, Number& value) override { scalar(field, value); }
  void on(const Field& field, std::string& value) override { scalar(field, value); }

  void on(const Field& field, Dtype& value) override {
    const Node* node = given(field);
    if (node == nullptr) return;
    try {
      value = dtype_from_name(node->text);
    } catch (const Error&) {
      std::vector<std::string_view> names;
      for (const Dtype dtype : kAllDtypes)
        names.push_back(name_of(dtype));
      reader_.wrong(field.name, *node, "it must be " + alternatives(names));
    }
  }

  void on_choice(const Field& field, int& index, std::span<const std::string_view> names) override {
    if (given(field) != nullptr) reader_.read_choice(field.name, index, names);
  }

  void on(const Field& field, std::vector<std::int64_t>& value) override {
    list(field, value, "it must be an integer or a list of integers");
  }
  void on(const Field& field, Reals& value) override {
    list(field, value.values, "it must be a number or a list of numbers");
  }

  void on(const Field& field, ConstantArray& value) override {
    const Node* node = given(field);
    if (node == nullptr) return;
    if (node->kind != Node::Kind::scalar || node->text.empty()) {
      return reader_.wrong(field.name, *node, "it must be the path of a .npy file");
    }
    try {
      value.array = read_npy(resolve_path(folder_, node->text));
      value.path = node->text;
    } catch (const Error& error) {
      reader_.mistake(node->position, fmt::format("`{}`: {}", field.name, error.what()));
    }
  }

 private:
  /// What the stage gives for the field; says so when a required one is missing.
  const Node* given(const Field& field) {
    const Node* node = reader_.find(field.name);
    if (node == nullptr && field.required) {
      reader_.mistake(reader_.position(),
                      fmt::format("`{}` is missing; it must be given. {}", field.name, field.doc));
    }
    return node;
  }

  bool visit_optional(const Field& field, bool) override {
    const Node* node = given(field);
    return node != nullptr && node->kind != Node::Kind::null;
  }

  template <class T>
  void scalar(const Field& field, T& value) {
    if (given(field) != nullptr) reader_.read_into(field.name, value);
  }

  template <class T>
  void list(const Field& field, std::vector<T>& values, std::string_view allowed) {
    const Node* node = given(field);
    if (node == nullptr) return;
    if (node->kind == Node::Kind::sequence) {
      std::vector<T> elements(node->items.size());
      for (std::size_t i = 0; i < elements.size(); ++i) {
        const std::string problem = read(node->items[i], elements[i]);
        if (!problem.empty())
          return reader_.wrong(fmt::format("{}[{}]", field.name, i), node->items[i], problem);
      }
      values = std::move(elements);
      return;
    }
    T element{};
    if (!read(*node, element).empty()) return reader_.wrong(field.name, *node, allowed);
    values = {element};
  }

  MapReader& reader_;
  const std::string& folder_;
};

}  // namespace

std::string resolve_path(const std::string& folder, const std::string& path) {
  return (std::filesystem::path(folder) / path).lexically_normal().string();
}

std::vector<MapReader::Name> setting_names(const OpDef& def) {
  NameLister lister;
  def.fields(def.make().get(), lister);
  return std::move(lister.names);
}

std::shared_ptr<const void> bind_settings(const OpDef& def, MapReader& reader,
                                          const std::string& folder) {
  const std::size_t before = reader.report().mistakes();
  const std::shared_ptr<void> settings = def.make();
  SettingsReader visitor(reader, folder);
  def.fields(settings.get(), visitor);
  if (reader.report().mistakes() == before) {
    for (const FieldProblem& problem : check_fields(def, settings.get())) {
      const Node* node = reader.find(problem.name);
      if (node != nullptr) reader.mistake(node->position, problem.text);
    }
  }
  return reader.report().mistakes() == before ? settings : nullptr;
}

}  // namespace forebay::config
