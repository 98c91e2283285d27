#pragma once

// Internal: what CompileOnly (kernel.h) changes while it lives.

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include <forebay/array/cuda/kernel.h>

namespace forebay::cuda {

struct CompileOnly::State {
  std::vector<int> architectures;
  std::shared_ptr<State> outer;  ///< the one that was alive before
  std::mutex mutex;
  std::set<std::string> compiled;     ///< keys of the kernels compiled for every architecture
  std::vector<KernelSource> sources;  ///< of the same kernels
};

/// The state of the CompileOnly that lives; null when there is none.
std::shared_ptr<CompileOnly::State> compile_only();

}  // namespace forebay::cuda
