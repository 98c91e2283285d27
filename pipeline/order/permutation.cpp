#include <forebay/pipeline/order/permutation.h>

#include <algorithm>
#include <bit>

#include <forebay/array/philox.h>
#include <forebay/array/require.h>
#include <forebay/pipeline/hash.h>

namespace forebay {

Permutation::Permutation(std::int64_t size, std::uint64_t seed, std::int64_t epoch,
                         std::int64_t stream)
    : size_(size) {
  FOREBAY_REQUIRE(size >= 0, invalid, "a permutation cannot have size {}; it must be at least 0.",
                  size);
  const auto last = static_cast<std::uint64_t>(std::max<std::int64_t>(size - 1, 0));
  const int bits = std::max(8, static_cast<int>(std::bit_width(last)));
  left_bits_ = bits / 2;
  right_bits_ = bits - left_bits_;
  const auto e = static_cast<std::uint64_t>(epoch), s = static_cast<std::uint64_t>(stream);
  for (int round = 0; round < kRounds; round += 2) {
    // Eight pairs of rounds would have room beside the upper word of the stream.
    const auto first = static_cast<std::uint32_t>(round / 2 | (s >> 32) << 3);
    const auto words = philox({first, static_cast<std::uint32_t>(s), static_cast<std::uint32_t>(e),
                               static_cast<std::uint32_t>(e >> 32)},
                              seed);
    keys_[round] = words[0] | std::uint64_t{words[1]} << 32;
    keys_[round + 1] = words[2] | std::uint64_t{words[3]} << 32;
  }
}

std::int64_t Permutation::operator()(std::int64_t position) const {
  if (size_ < 2) return position;
  const std::uint64_t left_mask = (std::uint64_t{1} << left_bits_) - 1;
  const std::uint64_t right_mask = (std::uint64_t{1} << right_bits_) - 1;
  auto value = static_cast<std::uint64_t>(position);
  do {
    std::uint64_t left = value >> right_bits_, right = value & right_mask;
    for (int round = 0; round < kRounds; round += 2) {
      left ^= mix(right ^ keys_[round]) & left_mask;
      right ^= mix(left ^ keys_[round + 1]) & right_mask;
    }
    value = left << right_bits_ | right;
  } while (value >= static_cast<std::uint64_t>(size_));
  return static_cast<std::int64_t>(value);
}

}  // namespace forebay
