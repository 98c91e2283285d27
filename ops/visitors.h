#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <forebay/ops/op.h>

// Walks over an op's fields() that every layer needs.
namespace forebay {

/// One setting as text: `-3`, `[0, 1]`, `f16`, `wrap`, `data/w.npy`.
struct SettingText {
  std::string_view name;
  std::string text;
  std::optional<Array> array = {};  ///< of a constant array; the text is its path or its spec
};

/// Every setting that has a value, in the order of fields().
std::vector<SettingText> setting_texts(const OpDef& def, const void* settings);
/// Those that are not the defaults.
std::vector<SettingText> changed_settings(const Op& op);

/// `normalize(mean=0.13, std=0.31)`: the op with those settings that are not the defaults.
std::string to_string(const Op& op);

/// What is wrong with one setting: "`epsilon` is -1; it must be at least 0."
struct FieldProblem {
  std::string_view name;
  std::string text;
};

/// Every number against the bounds of its field, and every required array or list for being there.
std::vector<FieldProblem> check_fields(const OpDef& def, const void* settings);

}  // namespace forebay
