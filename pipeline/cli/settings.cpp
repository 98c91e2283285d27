#include <forebay/pipeline/cli/settings.h>

#include <algorithm>
#include <cmath>

#include <forebay/array/require.h>
#include <forebay/ops/registry.h>
#include <forebay/ops/visitors.h>

namespace forebay::cli {
namespace {

class Gatherer final : public FieldVisitor {
 public:
  std::vector<Setting> settings;

  void on(const Field& field, bool&) override { add(field, Setting::Type::boolean); }
  void on(const Field& field, std::int64_t&) override { add(field, Setting::Type::integer); }
  void on(const Field& field, double&) override { add(field, Setting::Type::real); }
  void on(const Field& field, Number&) override { add(field, Setting::Type::number); }
  void on(const Field& field, std::string&) override { add(field, Setting::Type::text); }
  void on(const Field& field, std::vector<std::int64_t>&) override {
    add(field, Setting::Type::integers);
  }
  void on(const Field& field, Reals&) override { add(field, Setting::Type::reals); }
  void on(const Field& field, ConstantArray&) override { add(field, Setting::Type::array); }
  void on(const Field& field, Dtype&) override {
    Setting& setting = add(field, Setting::Type::dtype);
    for (const Dtype dtype : kAllDtypes)
      setting.choices.push_back(name_of(dtype));
  }
  void on_choice(const Field& field, int&, std::span<const std::string_view> names) override {
    add(field, Setting::Type::choice).choices.assign(names.begin(), names.end());
  }

 private:
  bool visit_optional(const Field&, bool) override {
    optional_ = true;
    return true;
  }
  Setting& add(const Field& field, Setting::Type type) {
    settings.push_back(
        {.field = field, .type = type, .optional = optional_, .choices = {}, .fallback = {}});
    optional_ = false;
    return settings.back();
  }
  bool optional_ = false;
};

}  // namespace

std::vector<Setting> settings_of(const OpDef& def) {
  const auto defaults = setting_texts(def, def.make().get());
  Gatherer gatherer;
  def.fields(def.make().get(), gatherer);
  for (Setting& setting : gatherer.settings) {
    for (const SettingText& text : defaults) {
      if (text.name == setting.field.name && !setting.field.required) setting.fallback = text.text;
    }
  }
  return std::move(gatherer.settings);
}

std::string type_text(const Setting& setting) {
  switch (setting.type) {
    case Setting::Type::boolean:
      return "true or false";
    case Setting::Type::integer:
      return "integer";
    case Setting::Type::real:
      return "number";
    case Setting::Type::number:
      return "number, integers exact";
    case Setting::Type::dtype:
      return "dtype";
    case Setting::Type::text:
      return "text";
    case Setting::Type::integers:
      return "integer or list";
    case Setting::Type::reals:
      return "number or list";
    case Setting::Type::array:
      return "path of a .npy file";
    case Setting::Type::choice:
      break;
  }
  std::string text;
  for (const std::string_view choice : setting.choices)
    text += (text.empty() ? "" : ", ") + std::string(choice);
  return text;
}

std::string bounds_text(const Field& field) {
  const bool low = !std::isinf(field.min), high = !std::isinf(field.max);
  if (low && high) return fmt::format("{} to {}", field.min, field.max);
  if (low) return fmt::format(">= {}", field.min);
  return high ? fmt::format("<= {}", field.max) : "";
}

std::string kind_text(const OpEntry& entry) {
  if (entry.def.lower == nullptr) return "kernel";
  return entry.cpu == nullptr ? "pointwise" : "pointwise or kernel";
}

bool runs_on(const OpEntry& entry, DeviceKind kind) {
  if (entry.cpu != nullptr || entry.cuda != nullptr) return entry.body(kind) != nullptr;
  // A pointwise op has no body of its own: it runs where the language does.
  return kind == DeviceKind::cpu ||
         std::any_of(registry().begin(), registry().end(),
                     [](const OpEntry& other) { return other.cuda != nullptr; });
}

}  // namespace forebay::cli
