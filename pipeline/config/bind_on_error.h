#pragma once

#include <string>

#include <forebay/pipeline/config/map_reader.h>

namespace forebay::config {

/// checks and on_error of the pipeline that `reader` reads. Paths are relative to `folder`.
void bind_on_error(MapReader& reader, const std::string& folder, Spec& spec);

}  // namespace forebay::config
