#include <forebay/pipeline/hash.h>

#include <algorithm>
#include <cstring>

#include <fmt/core.h>

namespace forebay {

std::uint64_t hash_bytes(std::span<const std::byte> bytes, std::uint64_t seed) {
  std::uint64_t hash = mix(seed ^ mix(bytes.size() + 1));
  for (std::size_t at = 0; at < bytes.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, std::min<std::size_t>(bytes.size() - at, 8));
    hash = mix(hash ^ word) + 0x9E3779B97F4A7C15;
  }
  return mix(hash);
}

std::uint64_t hash_text(std::string_view text) {
  return hash_bytes(std::as_bytes(std::span(text)));
}

std::string hex(std::uint64_t hash) { return fmt::format("{:016x}", hash); }

}  // namespace forebay
