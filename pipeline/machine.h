#pragma once

// Internal: the streams and the memory that the plans of one pipeline share.

#include <optional>

#include <forebay/array/context.h>
#include <forebay/pipeline/memory_map.h>
#include <forebay/pipeline/pipeline.h>

namespace forebay {

struct Machine {
  Context cpu;
  std::optional<Context> gpu;        ///< its stream is the compute stream
  Array shared_host, shared_device;  ///< u8: temporaries
  bool time_steps = false;
  bool cuda_graphs = true;
};

/// For plans whose shared memory fits into that of `map`. Errors: resource and device.
Machine make_machine(const Plan& plan, const MemoryMap& map, const Options& options);

}  // namespace forebay
