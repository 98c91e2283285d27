#pragma once

#include <string>

#include <forebay/pipeline/config/map_reader.h>

namespace forebay::config {

/// The source of the pipeline that `reader` reads. Paths are relative to `folder`; the files are
/// opened.
void bind_source(MapReader& reader, const std::string& folder, Spec& spec);

}  // namespace forebay::config
