#pragma once

#include <string>

namespace forebay::cli {

/// Makes `text` the content of the file, whole or not at all: what a killed run leaves behind is the
/// one before. Errors: io.
void replace_file(const std::string& path, const std::string& text);

}  // namespace forebay::cli
