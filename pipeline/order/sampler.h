#pragma once

#include <cstdint>

#include <forebay/pipeline/order/order.h>
#include <forebay/pipeline/order/shard.h>

namespace forebay {

enum class LastBatchPolicy : std::uint8_t { partial, drop, fill };

/// Where a run stands. `cursor` counts the samples of the epoch that were delivered before, by all
/// shards together: it means the same whatever the batch size and the number of shards.
struct BatchPosition {
  std::int64_t epoch = 0;
  std::int64_t step = 0;  ///< number of the batch within the epoch
  std::int64_t cursor = 0;
  friend bool operator==(const BatchPosition&, const BatchPosition&) = default;
};

/// Cuts the order of an epoch into batches, for all shards alike and for one of them. Pure
/// arithmetic on positions.
///
/// The global batch at a cursor is the next batch_size * num_shards samples of the order; shard r
/// has rows r * batch_size and on, so that the shards' batches one after another are the batch of a
/// run with one shard. Every shard has the same number of steps, and batches of the same number of
/// rows. What is left for the last step of an epoch: `drop` leaves it out; `fill` completes the
/// global batch from the start of the epoch's order; `partial` deals it out evenly, the first
/// shards getting one row more, and a shard with one row less (perhaps none) repeats a sample.
class Sampler {
 public:
  struct Settings {
    OrderPtr order;
    std::int64_t batch_size = 1;  ///< of a shard
    LastBatchPolicy last_batch = LastBatchPolicy::partial;
    Shard shard = {};
  };
  explicit Sampler(Settings settings);

  const Order& order() const { return *settings_.order; }
  const Shard& shard() const { return settings_.shard; }
  std::int64_t steps_per_epoch() const { return steps_from(0); }
  /// Batches from `cursor` to the end of the epoch.
  std::int64_t steps_from(std::int64_t cursor) const;
  /// No batch begins at `cursor`: the epoch ends there.
  bool ends_at(std::int64_t cursor) const;
  /// Rows of the batch at `cursor`, where the epoch does not end: the same for all shards.
  std::int64_t rows(std::int64_t cursor) const;
  /// How many of them, from the first, are samples at their own positions of the epoch; the rest
  /// repeat others to make the shards' batches equal or full.
  std::int64_t real_rows(std::int64_t cursor) const;
  /// Writes the samples of the batch to `indices[0..rows(position.cursor))`.
  void indices(const BatchPosition& position, std::int64_t* indices) const;
  /// The sample that stands in for the one in row `row` of the batch, at attempt 0 to
  /// kMostAttempts - 1: Order::stand_in of random bits. Depends on `seed`, the epoch, the row's
  /// position in the order and the attempt alone.
  std::int64_t substitute(const BatchPosition& position, std::int64_t row, std::uint64_t seed,
                          std::int64_t attempt) const;
  static constexpr std::int64_t kMostAttempts = 100;
  /// Samples of an epoch at their own positions that one shard has, at most.
  std::int64_t samples_of_shard() const;
  /// The batch behind the one at `position`, or the end of the epoch.
  BatchPosition after(const BatchPosition& position) const;
  /// Where `cursor` of `epoch` lies.
  BatchPosition at(std::int64_t epoch, std::int64_t cursor) const;
  /// Rows of the last batch of an epoch that goes on at `cursor`, when there are fewer than in the
  /// others; else 0.
  std::int64_t tail_rows(std::int64_t cursor = 0) const;

 private:
  /// The part of the global batch at `cursor` that is this shard's.
  struct Part {
    std::int64_t begin, rows, real;
  };
  Part part(std::int64_t cursor) const;

  Settings settings_;
  std::int64_t length_, global_batch_;
};

}  // namespace forebay
