#pragma once

#include <string>

#include <forebay/pipeline/plan.h>

namespace forebay::cli {

/// Writes the device code of each step of a plan for a GPU to `folder`, one file a kernel, named in
/// the order of the steps, and the prelude that is compiled before each. Returns how many. Needs no
/// GPU. Errors: unsupported for a plan on the CPU or in a build without CUDA; io.
int dump_kernels(const Plan& plan, const std::string& folder);

}  // namespace forebay::cli
