#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <forebay/pipeline/spec.h>

namespace forebay {

/// Reads a pipeline from a YAML file; its data files are opened, their paths relative to the YAML
/// file. `notes` gets a line for each alias that was used; `device` overrides the file's own.
/// Errors: io when the file cannot be read; invalid with every mistake in it, a line each,
/// "train.yaml:14:16: ...".
Spec load_spec(const std::string& path, std::vector<std::string>* notes = nullptr,
               const std::optional<Device>& device = {});

/// The same from text. `file` stands in positions and lends its folder to relative paths.
Spec parse_spec(const std::string& text, const std::string& file,
                std::vector<std::string>* notes = nullptr,
                const std::optional<Device>& device = {});

/// One stage, "{op: clip, min: -3, max: 3}". Paths are relative to `folder`. Errors: as load_spec.
StageSpec parse_stage(std::string_view yaml, const std::string& folder = "");

}  // namespace forebay
