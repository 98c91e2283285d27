#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <forebay/ops/op.h>

namespace forebay::cli {

/// What there is to tell of one setting of an op, gathered from its fields().
struct Setting {
  enum class Type { boolean, integer, real, number, dtype, text, integers, reals, array, choice };
  Field field;
  Type type = Type::text;
  bool optional = false;                  ///< may stay without a value
  std::vector<std::string_view> choices;  ///< choice, dtype
  std::string fallback;                   ///< the default as text; empty when there is none
};

std::vector<Setting> settings_of(const OpDef& def);

/// "number", "list of integers", "none, full".
std::string type_text(const Setting& setting);
/// ">= 0", "1 to 8", or nothing.
std::string bounds_text(const Field& field);

/// "pointwise", "kernel", or both, where the settings decide.
std::string kind_text(const OpEntry& entry);
/// Whether this build runs it there.
bool runs_on(const OpEntry& entry, DeviceKind kind);

}  // namespace forebay::cli
