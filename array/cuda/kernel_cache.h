#pragma once

// Internal: the folder of what was compiled or measured before, and what load_kernel is made of.

#include <optional>
#include <string>
#include <vector>

#include <forebay/array/cuda/kernel.h>

namespace forebay::cuda {

/// What a machine has to find out once, in the folder that kernel.h describes: nothing when it is not there or not
/// whole. Safe while other processes do the same; failing to write costs the caching.
std::optional<std::string> read_cached(const std::string& name);
void write_cached(const std::string& name, const std::string& content);

/// Names the compiled code of `source`: a hash of all that it depends on.
std::string kernel_key(const KernelSource& source, int architecture);

/// compile_kernel, through that folder.
std::string cached_cubin(const KernelSource& source, int architecture);

/// `13.0`.
std::string nvrtc_version();
/// The options that compile_kernel passes, in order.
std::vector<std::string> nvrtc_options(const KernelSource& source, int architecture);

}  // namespace forebay::cuda
