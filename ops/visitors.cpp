#include <forebay/ops/visitors.h>

#include <algorithm>
#include <cmath>

#include <forebay/array/require.h>

namespace forebay {
namespace {

std::string text_of(double value) { return fmt::format("{}", value); }
std::string text_of(std::int64_t value) { return fmt::format("{}", value); }

template <class T>
std::string list_text(const std::vector<T>& values) {
  std::string text = "[";
  for (std::size_t i = 0; i < values.size(); ++i)
    text += (i == 0 ? "" : ", ") + text_of(values[i]);
  return text + "]";
}

/// A walk that only looks: settings stay as they are, and optionals without a value are passed
/// over.
class Reader : public FieldVisitor {
 protected:
  bool visit_optional(const Field&, bool has_value) override { return has_value; }
};

class Printer final : public Reader {
 public:
  std::vector<SettingText> result;

  void on(const Field& field, bool& value) override { add(field, value ? "true" : "false"); }
  void on(const Field& field, std::int64_t& value) override { add(field, text_of(value)); }
  void on(const Field& field, double& value) override { add(field, text_of(value)); }
  void on(const Field& field, Number& value) override { add(field, to_string(value)); }
  void on(const Field& field, Dtype& value) override { add(field, std::string(name_of(value))); }
  void on(const Field& field, std::string& value) override { add(field, value); }
  void on(const Field& field, std::vector<std::int64_t>& value) override {
    add(field, list_text(value));
  }
  void on(const Field& field, Reals& value) override {
    add(field, value.values.size() == 1 ? text_of(value.values[0]) : list_text(value.values));
  }
  void on(const Field& field, ConstantArray& value) override {
    const Array& array = value.array;
    const bool there = array.owner() != nullptr;
    if (!value.path.empty()) {
      add(field, value.path);
    } else if (there) {
      add(field, fmt::format("{} {}", name_of(array.dtype()), to_string(array.shape())));
    }
    if (there) result.back().array = array;
  }
  void on_choice(const Field& field, int& index, std::span<const std::string_view> names) override {
    add(field, std::string(names[static_cast<std::size_t>(index)]));
  }

 private:
  void add(const Field& field, std::string text) {
    result.push_back({field.name, std::move(text)});
  }
};

class BoundsChecker final : public Reader {
 public:
  std::vector<FieldProblem> result;

  void on(const Field&, bool&) override {}
  void on(const Field& field, std::int64_t& value) override {
    check(field, static_cast<double>(value), text_of(value));
  }
  void on(const Field& field, double& value) override { check(field, value, text_of(value)); }
  void on(const Field& field, Number& value) override {
    check(field, value.f64(), to_string(value));
  }
  void on(const Field&, Dtype&) override {}
  void on(const Field& field, std::string& value) override {
    require(field, !value.empty());
    if (field.problem == nullptr || value.empty()) return;
    if (std::string text = field.problem(value); !text.empty())
      result.push_back({field.name, std::move(text)});
  }
  void on(const Field& field, std::vector<std::int64_t>& value) override {
    for (std::int64_t item : value)
      check(field, static_cast<double>(item), text_of(item));
  }
  void on(const Field& field, Reals& value) override {
    require(field, !value.values.empty());
    for (double item : value.values)
      check(field, item, text_of(item));
  }
  void on(const Field& field, ConstantArray& value) override {
    require(field, value.array.owner() != nullptr || !value.path.empty());
  }
  void on_choice(const Field& field, int& index, std::span<const std::string_view> names) override {
    if (index >= 0 && index < static_cast<int>(names.size())) return;
    result.push_back(
        {field.name, fmt::format("`{}` is not one of its {} choices.", field.name, names.size())});
  }

 private:
  void check(const Field& field, double value, const std::string& text) {
    if (std::isinf(field.min) && std::isinf(field.max)) return;
    if (value >= field.min && value <= field.max) return;
    const std::string allowed = std::isinf(field.max) ? fmt::format("at least {}", field.min)
                                : std::isinf(field.min)
                                    ? fmt::format("at most {}", field.max)
                                    : fmt::format("between {} and {}", field.min, field.max);
    result.push_back(
        {field.name, fmt::format("`{}` is {}; it must be {}.", field.name, text, allowed)});
  }
  void require(const Field& field, bool there) {
    if (field.required && !there)
      result.push_back({field.name, fmt::format("`{}` is missing.", field.name)});
  }
};

/// fields() takes its settings as changeable for the walks that read a file; a Reader changes
/// nothing.
template <class Walk>
auto walk(const OpDef& def, const void* settings) {
  Walk visitor;
  def.fields(const_cast<void*>(settings), visitor);
  return std::move(visitor.result);
}

}  // namespace

std::vector<SettingText> setting_texts(const OpDef& def, const void* settings) {
  return walk<Printer>(def, settings);
}

std::vector<FieldProblem> check_fields(const OpDef& def, const void* settings) {
  return walk<BoundsChecker>(def, settings);
}

std::vector<SettingText> changed_settings(const Op& op) {
  const OpDef& def = op.entry().def;
  const auto defaults = setting_texts(def, def.make().get());
  auto settings = setting_texts(def, op.raw_settings());
  std::erase_if(settings, [&](const SettingText& setting) {
    return std::any_of(defaults.begin(), defaults.end(), [&](const SettingText& other) {
      return other.name == setting.name && other.text == setting.text;
    });
  });
  return settings;
}

std::string to_string(const Op& op) {
  std::string list;
  for (const SettingText& setting : changed_settings(op))
    list += fmt::format("{}{}={}", list.empty() ? "" : ", ", setting.name, setting.text);
  return list.empty() ? std::string(op.name()) : fmt::format("{}({})", op.name(), list);
}

}  // namespace forebay
