#include <forebay/pipeline/spec.h>

#include <fmt/core.h>

namespace forebay {

std::string to_string(const Position& position) {
  if (position.file.empty()) return {};
  return fmt::format("{}:{}:{}", position.file, position.line, position.column);
}

}  // namespace forebay
