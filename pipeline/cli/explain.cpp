// Commands that tell of ops and keys: explain and ops. All text comes from the ops' own
// definitions.
#include <fmt/core.h>

#include <forebay/array/require.h>
#include <forebay/ops/registry.h>
#include <forebay/pipeline/cli/commands.h>
#include <forebay/pipeline/cli/settings.h>
#include <forebay/pipeline/config/keys.h>

namespace forebay::cli {
namespace {

template <class List>
std::string joined(const List& names) {
  std::string text;
  for (const auto& name : names)
    text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

std::string devices_text(const OpEntry& entry) {
  std::vector<std::string_view> devices;
  if (runs_on(entry, DeviceKind::cpu)) devices.push_back("cpu");
  if (runs_on(entry, DeviceKind::cuda)) devices.push_back("cuda");
  return devices.empty() ? "none in this build" : joined(devices);
}

std::string inputs_text(const OpDef& def) {
  if (def.names_inputs != nullptr) return "the fields that its settings name";
  std::string text;
  const std::size_t required = def.inputs.size() - static_cast<std::size_t>(def.optional_inputs);
  for (std::size_t i = 0; i < def.inputs.size(); ++i) {
    text += fmt::format("{}{}{}", i == 0 ? "" : ", ", def.inputs[i],
                        i < required ? "" : " (may be left out)");
  }
  return text;
}

void print_op(const OpEntry& entry) {
  const OpDef& def = entry.def;
  fmt::print("{}: {}\n\n", def.name, def.summary);
  if (!def.alias.empty()) fmt::print("also called  {}\n", def.alias);
  fmt::print("kind         {}\n", kind_text(entry));
  fmt::print("devices      {}\n", devices_text(entry));
  fmt::print("reads        {}\n", inputs_text(def));
  fmt::print("writes       {}\n\n", joined(def.outputs));

  std::vector<std::vector<std::string>> rows;
  for (const Setting& setting : settings_of(def)) {
    const Field& field = setting.field;
    rows.push_back({std::string(field.name), type_text(setting),
                    field.required             ? "must be given"
                    : setting.fallback.empty() ? "none"
                                               : setting.fallback,
                    bounds_text(field), std::string(field.alias), std::string(field.doc)});
  }
  fmt::print("{}\n",
             rows.empty()
                 ? "It has no settings.\n"
                 : table({"setting", "type", "default", "bounds", "also called", "meaning"}, rows));
  fmt::print("example\n  - {}\n", def.example);
}

void print_key(const config::Key& key, std::string_view path) {
  fmt::print("{}{}: {}\n\n", path, key.name, key.doc);
  fmt::print("type         {}\n", key.type);
  fmt::print("default      {}\n", key.default_text());
  if (!key.aliases.empty()) fmt::print("also called  {}\n", joined(key.aliases));
}

}  // namespace

int explain(const Arguments& arguments) {
  const std::string& subject = arguments.subject;
  std::vector<std::string> names;
  for (const OpEntry& entry : registry()) {
    if (subject == entry.def.name || (!entry.def.alias.empty() && subject == entry.def.alias)) {
      print_op(entry);
      return kOk;
    }
    names.emplace_back(entry.def.name);
  }
  for (const auto& [path, keys] : config::sections()) {
    for (const config::Key& key : keys) {
      const std::string name = std::string(path) + std::string(key.name);
      bool found = subject == name || subject == key.name;
      for (const std::string_view alias : key.aliases)
        found = found || subject == alias;
      if (found) {
        print_key(key, path);
        return kOk;
      }
      names.push_back(name);
    }
  }
  const std::vector<std::string_view> views(names.begin(), names.end());
  const std::string_view nearest = nearest_name(subject, views);
  fail(ErrorKind::invalid, "there is no op or key `{}`; {}", subject,
       nearest.empty() ? "`forebay ops` lists the ops."
                       : fmt::format("did you mean `{}`?", nearest));
}

int ops(const Arguments&) {
  std::vector<std::vector<std::string>> rows;
  for (const OpEntry& entry : registry()) {
    const auto mark = [&](DeviceKind kind) { return runs_on(entry, kind) ? "yes" : "no"; };
    rows.push_back({std::string(entry.def.name), kind_text(entry), mark(DeviceKind::cpu),
                    mark(DeviceKind::cuda), std::string(entry.def.summary)});
  }
  fmt::print("{}", table({"op", "kind", "cpu", "cuda", "what it does"}, rows));
  return kOk;
}

}  // namespace forebay::cli
