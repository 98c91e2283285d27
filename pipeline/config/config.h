#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <forebay/array/stream.h>
#include <forebay/pipeline/spec.h>

namespace forebay {

struct LoadOptions {
  std::optional<Device> device{};             ///< overrides the file's own
  Presence presence = Presence::required;     ///< of the devices that the file names
  std::vector<std::string>* notes = nullptr;  ///< gets a line for each alias that was used
  /// Only so many stages from the first; the others, and `output`, are not read.
  std::optional<std::int64_t> stages{};
};

/// Reads a pipeline from a YAML file; its data files are opened, their paths relative to
/// the YAML file.
/// Errors: io when the file cannot be read; invalid with every mistake in it, a line each,
/// "train.yaml:14:16: ...".
Spec load_spec(const std::string& path, const LoadOptions& options = {});

/// One stage, "{op: clip, min: -3, max: 3}". Paths are relative to `folder`. Errors: as load_spec.
StageSpec parse_stage(std::string_view yaml, const std::string& folder = "");

}  // namespace forebay
