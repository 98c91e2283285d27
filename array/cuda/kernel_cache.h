#pragma once

// Internal: what load_kernel is made of.

#include <string>
#include <vector>

#include <forebay/array/cuda/kernel.h>

namespace forebay::cuda {

/// Names the compiled code of `source`: a hash of all that it depends on.
std::string kernel_key(const KernelSource& source, int architecture);

/// compile_kernel, through the folder on disk that kernel.h describes. Safe while other processes
/// do the same.
std::string cached_cubin(const KernelSource& source, int architecture);

/// `13.0`.
std::string nvrtc_version();
/// The options that compile_kernel passes, in order.
std::vector<std::string> nvrtc_options(const KernelSource& source, int architecture);

}  // namespace forebay::cuda
