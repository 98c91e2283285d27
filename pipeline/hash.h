#pragma once

// Internal: a 64-bit hash whose values stay: splits and saved states hang on it. Not cryptographic.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace forebay {

/// Each bit of the result depends on each bit of `value` (David Stafford's thirteenth mixer).
constexpr std::uint64_t mix(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EB;
  return value ^ (value >> 31);
}

/// Of the bytes, in words of eight.
std::uint64_t hash_bytes(std::span<const std::byte> bytes, std::uint64_t seed = 0);
std::uint64_t hash_text(std::string_view text);
/// 16 digits.
std::string hex(std::uint64_t hash);

}  // namespace forebay
