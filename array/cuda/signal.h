#pragma once

// Internal: how the host lets a CUDA stream go on. A host function that blocks would do, but CUDA
// may run the host functions of all streams, and wake those who wait for events, in one thread:
// streams of both devices that wait for each other would stop for good.

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>

namespace forebay::cuda {

/// A page-locked word that is 0; it goes back when the last owner is gone, and must not be
/// awaited then.
std::shared_ptr<std::uint32_t> signal_word();
/// Lets those go on that wait for `word`, now and later. Safe from any thread; calls no CUDA.
void signal(std::uint32_t& word);
/// Later work in `stream` waits until `word` is signalled. Errors: device.
void wait_for_word(cudaStream_t stream, const std::uint32_t& word);

}  // namespace forebay::cuda
