#pragma once

#include <string>

namespace forebay::config {

/// All of a file. Errors: io, naming it, for a folder and for what cannot be read.
std::string text_of_file(const std::string& path);

}  // namespace forebay::config
