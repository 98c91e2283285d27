#pragma once

// Internal: says where in a run something failed.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <forebay/array/error.h>

namespace forebay {

/// Inside a catch block: throws an Error "`where`: text of the current exception", of the same
/// kind; `otherwise` for what is no Error. `op` at the front of the text is dropped: `where` names
/// it.
[[noreturn]] void rethrow_at(const std::string& where, ErrorKind otherwise,
                             std::string_view op = {});

/// "sample 5", "samples 96..127" when they follow each other, else "samples 5, 17, 3", the first
/// few.
std::string sample_title(std::span<const std::int64_t> samples);

}  // namespace forebay
