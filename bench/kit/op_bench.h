#pragma once

#include <functional>
#include <string>

#include "kit/data.h"

namespace forebay::bench {

/// Registers Google Benchmark's `name/cpu` and, where there is a GPU, `name/cuda`: the steps of the
/// plan of the pipeline that `declare` builds, on data that is on the device already, outputs in
/// kept buffers. `bytes_per_second` counts the plan's columns and outputs once. The result means
/// nothing; it lets a file of benches start with
///     [[maybe_unused]] const bool benches[] = {
///         add("clip/f32", [] { return on({{65536, 1024}}).clip({.min = -3, .max = 3}); }),
///     };
bool add(const std::string& name, const std::function<PipelineBuilder()>& declare);

}  // namespace forebay::bench
