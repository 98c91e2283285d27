#pragma once

#include <memory>
#include <string>

#include <forebay/ops/op.h>
#include <forebay/pipeline/config/map_reader.h>

namespace forebay::config {

/// Names of an op's settings with their aliases, in the order of its fields().
std::vector<MapReader::Name> setting_names(const OpDef& def);

/// Settings of an op from the keys of a stage: types, bounds, required keys. Paths of arrays are
/// relative to `folder`, and the arrays are read. Null when something was wrong, which the reader's
/// report then holds.
std::shared_ptr<const void> bind_settings(const OpDef& def, MapReader& reader,
                                          const std::string& folder);

/// `path` as seen from `folder`: itself when it is absolute or the folder is empty.
std::string resolve_path(const std::string& folder, const std::string& path);

}  // namespace forebay::config
