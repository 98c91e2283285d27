#include <forebay/pipeline/mistakes.h>

#include <algorithm>

#include <forebay/array/require.h>
#include <forebay/ops/registry.h>
#include <forebay/pipeline/value_checks.h>

namespace forebay {

void Mistakes::add(int place, const Position& position, const std::string& text) {
  const std::string where = to_string(position);
  lines_.emplace(place, where.empty() ? text : where + ": " + text);
}

void Mistakes::raise() const {
  if (lines_.empty()) return;
  std::string text;
  for (const auto& [place, line] : lines_)
    text += (text.empty() ? "" : "\n") + line;
  throw Error(ErrorKind::invalid, text);
}

std::string stage_title(const Spec& spec, int stage) {
  return fmt::format("stage {} ({})", stage + 1,
                     spec.stages[static_cast<std::size_t>(stage)].op.name());
}

std::string without_op_name(std::string_view text, std::string_view op) {
  if (text.starts_with(op) && text.substr(op.size()).starts_with(": "))
    text.remove_prefix(op.size() + 2);
  return std::string(text);
}

std::string quoted(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names)
    text += (text.empty() ? "`" : ", `") + name + "`";
  return text;
}

std::string did_you_mean(const std::string& name, const std::vector<std::string>& names) {
  const std::vector<std::string_view> views(names.begin(), names.end());
  const std::string_view nearest = nearest_name(name, views);
  return nearest.empty() ? std::string() : fmt::format(" Did you mean `{}`?", nearest);
}

namespace {

/// True when there is nothing wrong.
bool check_source(const Spec& spec, Mistakes& mistakes) {
  bool right = true;
  const auto add = [&](const std::string& text) {
    mistakes.add(Mistakes::kSettings, spec.source_position, text);
    right = false;
  };
  if (spec.source == nullptr) {
    mistakes.add(Mistakes::kSettings,
                 spec.source_position.file.empty() ? spec.position : spec.source_position,
                 "the pipeline has no source; name where its samples come from.");
    return false;
  }
  const std::string title = "source " + spec.source->describe();
  const auto& columns = spec.source->columns();
  if (columns.empty())
    add(fmt::format("{}: it has no columns; a source needs at least one.", title));
  if (spec.source->size() < 0) {
    add(fmt::format("{}: its size is {}; it must be at least 0.", title, spec.source->size()));
  }
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const Column& column = columns[i];
    const auto same_name = [&](const Column& other) { return other.name == column.name; };
    if (std::any_of(columns.begin(), columns.begin() + static_cast<std::ptrdiff_t>(i), same_name)) {
      add(fmt::format("{}: two columns are called `{}`; give each its own name.", title,
                      column.name));
    }
    if (column.shape.rank >= kMaxRank) {
      add(
          fmt::format("{}: column `{}` has samples of rank {}; it must be at most {}, as the batch "
                      "adds an axis.",
                      title, column.name, column.shape.rank, kMaxRank - 1));
    }
    if (std::any_of(column.shape.begin(), column.shape.end(),
                    [](std::int64_t extent) { return extent < 0; })) {
      add(fmt::format("{}: column `{}` has samples of shape {}; extents must be at least 0.", title,
                      column.name, to_string(column.shape)));
    }
  }
  return right;
}

}  // namespace

bool check_settings(const Spec& spec, Mistakes& mistakes) {
  const auto at_least = [&](const Position& position, const char* name, std::int64_t value,
                            std::int64_t least) {
    if (value < least) {
      mistakes.add(Mistakes::kSettings, position.file.empty() ? spec.position : position,
                   fmt::format("`{}` is {}; it must be at least {}.", name, value, least));
    }
  };
  at_least(spec.batch_size_position, "batch_size", spec.batch_size, 1);
  at_least(spec.position, "num_threads", spec.num_threads, 0);
  at_least(spec.position, "prefetch_queue_depth", spec.prefetch_queue_depth, 1);
  at_least(spec.position, "max_held_batches", spec.max_held_batches, 1);
  at_least(spec.shard_position, "num_shards", spec.shard.num_shards, 1);
  at_least(spec.shard_position, "shard_id", spec.shard.shard_id, 0);
  if (spec.shard.shard_id >= spec.shard.num_shards && spec.shard.num_shards > 0) {
    mistakes.add(
        Mistakes::kSettings, spec.shard_position.file.empty() ? spec.position : spec.shard_position,
        fmt::format("`shard_id` is {}, of {} shards; it must be at most {}.", spec.shard.shard_id,
                    spec.shard.num_shards, spec.shard.num_shards - 1));
  }
  const bool right = check_source(spec, mistakes);
  if (right) check_error_settings(spec, mistakes);
  return right;
}

}  // namespace forebay
