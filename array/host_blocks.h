#pragma once

#include <cstddef>

namespace forebay {

// Host memory as HostMemory hands it out; internal. Large blocks lie in pages of 2 MiB and are kept
// when they are freed: a fresh one costs its faults and the kernel's zeros, more than most ops cost
// (see the README of ops/expr).

/// Aligned to 256; null for 0 bytes or when there is no memory left.
void* take_host_block(std::size_t bytes) noexcept;
/// Takes back what take_host_block gave for `bytes`.
void give_host_block(void* data, std::size_t bytes) noexcept;
/// Bytes that are kept for blocks to come, an eighth of the machine's memory at most.
std::size_t kept_host_bytes();

}  // namespace forebay
