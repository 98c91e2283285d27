#include <forebay/pipeline/sampler.h>

#include <algorithm>
#include <bit>

#include <forebay/array/philox.h>
#include <forebay/array/require.h>

namespace forebay {
namespace {

/// Each bit of the result depends on each bit of `value` (David Stafford's thirteenth mixer).
std::uint64_t mix(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EB;
  return value ^ (value >> 31);
}

}  // namespace

Permutation::Permutation(std::int64_t size, std::uint64_t seed, std::int64_t epoch) : size_(size) {
  FOREBAY_REQUIRE(size >= 0, invalid, "a permutation cannot have size {}; it must be at least 0.",
                  size);
  const auto last = static_cast<std::uint64_t>(std::max<std::int64_t>(size - 1, 0));
  const int bits = std::max(8, static_cast<int>(std::bit_width(last)));
  left_bits_ = bits / 2;
  right_bits_ = bits - left_bits_;
  const auto e = static_cast<std::uint64_t>(epoch);
  for (int round = 0; round < kRounds; round += 2) {
    const auto words = philox({static_cast<std::uint32_t>(round / 2), 0,
                               static_cast<std::uint32_t>(e), static_cast<std::uint32_t>(e >> 32)},
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

std::int64_t Sampler::steps_per_epoch() const {
  const std::int64_t whole = settings_.size / settings_.batch_size;
  const bool rest = settings_.size % settings_.batch_size != 0;
  return whole + (rest && settings_.last_batch != LastBatchPolicy::drop ? 1 : 0);
}

std::int64_t Sampler::rows(std::int64_t step) const {
  if (settings_.last_batch == LastBatchPolicy::fill) return settings_.batch_size;
  return std::min(settings_.batch_size, settings_.size - step * settings_.batch_size);
}

void Sampler::indices(std::int64_t epoch, std::int64_t step, std::int64_t* indices) const {
  const std::int64_t first = step * settings_.batch_size, count = rows(step);
  const auto position = [&](std::int64_t row) { return (first + row) % settings_.size; };
  if (settings_.shuffle == ShuffleMode::none) {
    for (std::int64_t row = 0; row < count; ++row)
      indices[row] = position(row);
    return;
  }
  const Permutation permutation(settings_.size, settings_.seed, epoch);
  for (std::int64_t row = 0; row < count; ++row)
    indices[row] = permutation(position(row));
}

}  // namespace forebay
