#pragma once

// Internal: random numbers of orders and splits, as functions of what they are for.

#include <cstdint>

#include <forebay/array/philox.h>

namespace forebay {

/// What a seed is used for beside permutations: each has a Philox key of its own.
enum class Use : std::uint64_t { draw = 1, window = 2, split = 3, mix = 4, substitute = 5 };

/// 64 random bits for (seed, use, a, b).
inline std::uint64_t random_bits(std::uint64_t seed, Use use, std::int64_t a, std::int64_t b) {
  const auto x = static_cast<std::uint64_t>(a), y = static_cast<std::uint64_t>(b);
  const auto words = philox({static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(x >> 32),
                             static_cast<std::uint32_t>(y), static_cast<std::uint32_t>(y >> 32)},
                            seed + static_cast<std::uint64_t>(use) * 0x9E3779B97F4A7C15);
  return words[0] | std::uint64_t{words[1]} << 32;
}

/// Uniform in 0..count-1 from 64 random bits: the upper word of bits * count, so that no value is
/// more likely than another by more than count / 2^64 of its share.
inline std::int64_t below(std::int64_t count, std::uint64_t bits) {
  const auto product = static_cast<unsigned __int128>(bits) * static_cast<std::uint64_t>(count);
  return static_cast<std::int64_t>(product >> 64);
}

}  // namespace forebay
