#pragma once

#include <array>
#include <cstdint>

namespace forebay {

/// Philox4x32-10: four words of random bits as a function of a counter and a key, so that they can
/// be drawn in any order, anywhere, without a state. All randomness of Forebay comes from it.
/// Counter and key are given lowest word first, as in Random123 and cuRAND.
///
/// Who draws what: with key = seed, the upper half of counter word 3 is 0 for orders of samples and
/// the number of a random op otherwise (ops/random.h).
///
/// Source: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
[[gnu::always_inline]] constexpr std::array<std::uint32_t, 4> philox(
    std::array<std::uint32_t, 4> counter, std::uint64_t key) {
  auto low = static_cast<std::uint32_t>(key), high = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {
        static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ low, static_cast<std::uint32_t>(b),
        static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ high, static_cast<std::uint32_t>(a)};
    low += 0x9E3779B9;
    high += 0xBB67AE85;
  }
  return counter;
}

}  // namespace forebay
