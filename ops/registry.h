#pragma once

#include <span>
#include <string_view>

#include <forebay/ops/op.h>

namespace forebay {

/// Every op of this build, sorted by name.
std::span<const OpEntry> registry();

/// The entry called `name` (or by its alias). Errors: invalid, with the nearest name there is.
const OpEntry& find_op(std::string_view name);

/// The name among `names` that `name` was most likely meant to be, or empty when none is near.
std::string_view nearest_name(std::string_view name, std::span<const std::string_view> names);

}  // namespace forebay
