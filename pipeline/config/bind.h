#pragma once

#include <optional>
#include <string>

#include <forebay/pipeline/config/node.h>
#include <forebay/pipeline/config/report.h>
#include <forebay/pipeline/spec.h>

namespace forebay::config {

/// Builds the spec that the file asks for, opening its sources. Paths are relative to `folder`;
/// `device` overrides the file's own. Mistakes go to `report`; what is wrong stays at its default.
/// `complete` says whether source, batch size, stages and output are all there, so that compiling
/// the spec can tell more.
struct Bound {
  Spec spec;
  bool complete = false;
};
Bound bind_pipeline(const Node& root, const std::string& folder,
                    const std::optional<Device>& device, Report& report);

/// One stage. `number` counts from 1. No value when something was wrong.
std::optional<StageSpec> bind_stage(const Node& node, int number, const std::string& folder,
                                    Report& report);

}  // namespace forebay::config
