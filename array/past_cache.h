#pragma once

#include <cstddef>

namespace forebay {

/// From this size on an output is not read back from the caches that it was written to: writing it
/// past them saves the reading of what is overwritten, half of a write's traffic.
inline constexpr std::size_t kPastCacheBytes = std::size_t{4} << 20;

/// Copies `bytes` bytes, which lie in the cache, to memory past it (streaming stores; a plain copy
/// on processors without them). Other threads see the bytes after the parallel_for or the stream's
/// task that wrote them.
void copy_past_cache(void* to, const void* from, std::size_t bytes);

/// Orders this thread's copies past the cache before what it writes next. parallel_for does it.
void end_past_cache();

}  // namespace forebay
