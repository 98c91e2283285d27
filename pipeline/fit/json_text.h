#pragma once

// Internal.

#include <string>
#include <string_view>

namespace forebay::fit_detail {

/// `text` in quotes, as JSON and YAML write it.
std::string json_text(std::string_view text);

}  // namespace forebay::fit_detail
