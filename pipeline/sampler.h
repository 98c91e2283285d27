#pragma once

#include <cstdint>

namespace forebay {

/// A permutation of 0..size-1 that is computed, not stored: position -> index, the same on every
/// machine. A Feistel network over the smallest power of two that holds `size` (256 at least:
/// smaller networks do not reach all orders alike), whose round keys come from Philox4x32-10 with
/// key `seed` and counter (round, epoch), walking the cycle until the value is below `size`
/// (format-preserving encryption; Black and Rogaway, 2002). Errors: invalid for a negative size.
class Permutation {
 public:
  static constexpr int kRounds = 12;
  Permutation(std::int64_t size, std::uint64_t seed, std::int64_t epoch);
  /// The index at `position`, 0 <= position < size.
  std::int64_t operator()(std::int64_t position) const;
  std::int64_t size() const { return size_; }

 private:
  std::int64_t size_;
  int left_bits_, right_bits_;
  std::uint64_t keys_[kRounds];
};

enum class ShuffleMode : std::uint8_t { none, full };
enum class LastBatchPolicy : std::uint8_t { partial, drop, fill };

/// Which samples make up each batch of an epoch. Pure arithmetic on (size, seed, epoch).
/// `fill` completes the last batch with samples from the start of the epoch's order; `drop` leaves
/// it out.
class Sampler {
 public:
  struct Settings {
    std::int64_t size = 0;
    std::int64_t batch_size = 1;
    std::uint64_t seed = 0;
    ShuffleMode shuffle = ShuffleMode::none;
    LastBatchPolicy last_batch = LastBatchPolicy::partial;
  };
  explicit Sampler(const Settings& settings) : settings_(settings) {}

  std::int64_t steps_per_epoch() const;
  /// Rows of batch `step`: batch_size, or fewer for the last one under `partial`.
  std::int64_t rows(std::int64_t step) const;
  /// Writes the sample indices of batch `step` to `indices[0..rows(step))`.
  void indices(std::int64_t epoch, std::int64_t step, std::int64_t* indices) const;

 private:
  Settings settings_;
};

}  // namespace forebay
