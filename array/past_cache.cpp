#include <forebay/array/past_cache.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace forebay {

#if defined(__SSE2__)

void copy_past_cache(void* to, const void* from, std::size_t bytes) {
  constexpr std::size_t kLine = 64;
  auto* target = static_cast<char*>(to);
  const auto* source = static_cast<const char*>(from);
  // Whole lines only: part of one would be read, and written twice.
  const std::size_t head =
      std::min(bytes, (kLine - reinterpret_cast<std::uintptr_t>(target) % kLine) % kLine);
  std::memcpy(target, source, head);
  target += head, source += head, bytes -= head;
  for (; bytes >= kLine; target += kLine, source += kLine, bytes -= kLine) {
    __m128i parts[4];
    for (int i = 0; i < 4; ++i)
      parts[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(source) + i);
    for (int i = 0; i < 4; ++i)
      _mm_stream_si128(reinterpret_cast<__m128i*>(target) + i, parts[i]);
  }
  std::memcpy(target, source, bytes);
}

void end_past_cache() { _mm_sfence(); }

#else

void copy_past_cache(void* to, const void* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}

void end_past_cache() {}

#endif

}  // namespace forebay
