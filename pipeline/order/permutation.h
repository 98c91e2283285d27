#pragma once

#include <cstdint>

namespace forebay {

/// A permutation of 0..size-1 that is computed, not stored: position -> index, the same on every
/// machine. A Feistel network over the smallest power of two that holds `size` (256 at least:
/// smaller networks do not reach all orders alike), whose round keys come from Philox4x32-10 with
/// key `seed` and counter (round, stream, epoch), walking the cycle until the value is below `size`
/// (format-preserving encryption; Black and Rogaway, 2002). `stream` tells permutations of one
/// epoch apart. Errors: invalid for a negative size.
class Permutation {
 public:
  static constexpr int kRounds = 12;
  Permutation(std::int64_t size, std::uint64_t seed, std::int64_t epoch, std::int64_t stream = 0);
  /// The index at `position`, 0 <= position < size.
  std::int64_t operator()(std::int64_t position) const;
  std::int64_t size() const { return size_; }

 private:
  std::int64_t size_;
  int left_bits_, right_bits_;
  std::uint64_t keys_[kRounds];
};

}  // namespace forebay
