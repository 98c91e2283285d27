#pragma once

// Internal: the running part of a pipeline. A thread reads batches ahead into free slots and starts
// their steps.

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <forebay/pipeline/feed.h>
#include <forebay/pipeline/pipeline.h>
#include <forebay/pipeline/runner.h>

namespace forebay {

/// Streams: the reader (a CPU stream whose one task is the producer's loop, so that reading has an
/// arena of its own), the CPU stream for CPU steps, and on a GPU the copy stream and the compute
/// stream.
class Producer {
 public:
  /// Allocates all memory and starts. `plans`: the pipeline's own and those of smaller last
  /// batches; `feed` outlives this. Errors: resource and device.
  Producer(std::vector<std::shared_ptr<const Plan>> plans, const Options& options, Feed& feed);
  /// The feed has been stopped. Waits for the sample that is being read and for what has been
  /// enqueued.
  ~Producer();

  const std::shared_ptr<SlotPool>& pool() const { return pool_; }
  void add_to(Stats& stats);

 private:
  void loop() noexcept;
  void produce(const Ticket& ticket, SlotPool::Loan loan);
  Runner& runner_for(std::int64_t rows);
  void wait_until_writable(Slot& slot);
  Losses fill(const Ticket& ticket, Slot& slot, const Runner& runner);
  Losses read(const Ticket& ticket, const Slot& slot, const Runner& runner);
  void load(Slot& slot, const Runner& runner);
  void finish(const Ticket& ticket, SlotPool::Loan& loan, Runner& runner, Losses losses);

  const std::vector<std::shared_ptr<const Plan>> plans_;
  const std::shared_ptr<const Plan> plan_;  // the pipeline's own
  Feed& feed_;
  const RowReader rows_;
  bool copies_later_ = false;  // some copy reads host memory after the load
  Machine machine_;
  std::optional<Stream> copy_;  // with a GPU
  std::shared_ptr<SlotPool> pool_;
  std::mutex runners_mutex_;  // runners are made by the loop and asked by `add_to`
  std::vector<std::unique_ptr<Runner>> runners_;  // by plan
  std::atomic<std::int64_t> read_ns_{0};
  std::atomic<std::size_t> copied_bytes_{0}, returned_bytes_{0};
  Stream reader_;  // last: its thread uses all of the above
};

}  // namespace forebay
