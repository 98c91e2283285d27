#pragma once

#include <cstdint>
#include <string_view>

namespace forebay::cuda {

/// Shows the time between construction and destruction, in this thread, in profilers that listen to
/// NVTX (Nsight Systems): as "read, epoch 0, batch 3" in the domain "forebay". Costs nothing to
/// speak of when none listens, and does nothing in a build without CUDA.
class Range {
 public:
  Range(std::string_view label, std::int64_t epoch, std::int64_t batch);
  ~Range();
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;
};

}  // namespace forebay::cuda
