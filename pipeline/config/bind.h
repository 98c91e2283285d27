#pragma once

#include <optional>
#include <string>

#include <forebay/pipeline/config/config.h>
#include <forebay/pipeline/config/node.h>
#include <forebay/pipeline/config/report.h>

namespace forebay::config {

struct Bound {
  Spec spec;
  /// Source, batch size, stages and output are all there, so that compiling the spec can tell more.
  bool complete = false;
};
/// Builds the spec that the file asks for, opening its sources. Paths are relative to `folder`.
/// Mistakes go to `report`; what is wrong stays at its default.
Bound bind_pipeline(const Node& root, const std::string& folder, const LoadOptions& options,
                    Report& report);

/// One stage. `number` counts from 1. No value when something was wrong.
std::optional<StageSpec> bind_stage(const Node& node, int number, const std::string& folder,
                                    Presence presence, Report& report);

}  // namespace forebay::config
