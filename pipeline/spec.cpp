#include <forebay/pipeline/spec.h>

#include <fmt/core.h>

namespace forebay {

std::string to_string(const Position& position) {
  if (position.file.empty()) return {};
  return fmt::format("{}:{}:{}", position.file, position.line, position.column);
}

std::int64_t tail_rows(const Spec& spec) {
  if (spec.source == nullptr || spec.batch_size < 1 ||
      spec.last_batch_policy != LastBatchPolicy::partial)
    return 0;
  return spec.source->size() % spec.batch_size;
}

}  // namespace forebay
