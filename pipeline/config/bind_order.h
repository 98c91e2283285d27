#pragma once

#include <string>

#include <forebay/pipeline/config/map_reader.h>

namespace forebay::config {

/// Which samples, in which order, cut how: shuffle, sampling, subset, split, shard and
/// last_batch_policy of the pipeline that `reader` reads. Paths are relative to `folder`, and the
/// arrays are read.
void bind_order(MapReader& reader, const std::string& folder, Spec& spec);

}  // namespace forebay::config
