#pragma once

// Internal: between the producer and the consumer. Which batch comes next for either of them, the
// batches that are ready, and the first failure.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <forebay/pipeline/lease.h>
#include <forebay/pipeline/row_reader.h>

namespace forebay {

/// One batch to produce. Sequence numbers grow by one; a jump to another epoch begins a new
/// generation, and what was under way for an older one is dropped.
struct Ticket {
  std::int64_t generation = 0;
  std::int64_t sequence = 0;
  BatchPosition position;
};

struct ReadyBatch {
  Ticket ticket;
  SlotPool::Loan loan;
  std::shared_ptr<const BatchFields> fields;
  Losses losses = {};
};

/// Where a run stands.
struct Standing {
  BatchPosition position;
  std::int64_t bad = 0;  ///< bad samples of the epoch before it, in this process
};

/// Safe to use from any thread.
class Feed {
 public:
  Feed(std::shared_ptr<const Sampler> sampler, std::string name, const Standing& start)
      : sampler_(std::move(sampler)),
        name_(std::move(name)),
        producer_(begun(start.position)),
        consumer_(start) {}

  // Producer.

  /// The next batch to produce; goes on into the next epoch. Waits after a failure, and when epochs
  /// have no batch. No value once stopped.
  std::optional<Ticket> take();
  /// False when the batch is not wanted any more. Cheap.
  bool wanted(const Ticket& ticket) const;
  /// In the order of the tickets. Drops a batch that is not wanted.
  void push(ReadyBatch batch);
  /// `failure` is thrown to the consumer in the place of this batch, after those before it.
  void fail(const Ticket& ticket, std::exception_ptr failure);

  // Consumer.

  /// The batch that `pop` will give. No value at the end of an epoch, once: the next call is about
  /// the next epoch. Errors: as pop.
  std::optional<BatchPosition> upcoming();
  /// Waits for the next batch, which is then either delivered or the end of the run. Errors: the
  /// first failure, from then on each time; cancelled after `stop`.
  ReadyBatch pop();
  /// The batch that `pop` gave has been delivered: the run stands behind it.
  void delivered(const ReadyBatch& batch);
  /// Before the batch that `pop` will give, or where the epoch ends that had the last one.
  Standing standing() const;
  /// Every later call throws `failure`.
  void break_off(std::exception_ptr failure);
  /// Goes to the start of `epoch`, keeping what is ready for it. Errors: as pop.
  void start_epoch(std::int64_t epoch);
  /// Nothing more is produced or delivered; who waits gets cancelled.
  void stop() noexcept;

 private:
  void require_open() const;
  /// `position`, or the start of the next epoch where the epoch ends.
  BatchPosition begun(const BatchPosition& position) const;
  void forget_failure();

  const std::shared_ptr<const Sampler> sampler_;
  const std::string name_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stopped_ = false;
  std::int64_t generation_ = 0;
  std::int64_t next_sequence_ = 0;  // of the next ticket
  BatchPosition producer_;
  std::int64_t expected_sequence_ = 0;  // of the next batch for the consumer
  Standing consumer_;
  bool untouched_ = true;  // nothing was taken since `consumer_` was set, not by taking
  std::deque<ReadyBatch> queue_;
  std::exception_ptr failure_;
  std::int64_t failed_sequence_ = 0;
  bool thrown_ = false;  // the failure has been seen: it is final
};

}  // namespace forebay
