#pragma once

// Internal: a pipeline as its consumer sees it. See pipeline/README.md for who does what.

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include <forebay/pipeline/feed.h>
#include <forebay/pipeline/pipeline.h>
#include <forebay/pipeline/producer.h>
#include <forebay/pipeline/quarantine.h>

namespace forebay {

class Executor {
 public:
  /// Begins at `start`. Errors: unsupported when the plan's device is not there; invalid when
  /// Options::memory is of another device, or for what a last batch from there on does not fit; as
  /// Quarantine.
  Executor(std::shared_ptr<const Plan> plan, const Options& options, const Standing& start);
  ~Executor();

  const std::shared_ptr<const Plan>& plan() const { return plan_; }
  Options options() const;
  Standing standing() const { return feed_.standing(); }
  void set_default_memory(const MemoryPtr& memory);
  void start_epoch(std::int64_t epoch);
  /// `consumer`: null for the host. See Pipeline::next.
  std::optional<Batch> next(const Stream* consumer);
  void stop();
  Stats stats();

 private:
  Producer& producer();
  void check_memory(const MemoryPtr& memory) const;
  void account_for(const ReadyBatch& batch);
  void count(const std::vector<BadSample>& samples);

  const std::shared_ptr<const Plan> plan_;
  std::vector<std::shared_ptr<const Plan>> plans_;  // for each number of rows that comes
  Options options_;
  const std::int64_t bad_limit_;
  std::optional<Quarantine> quarantine_;
  Feed feed_;
  std::mutex consumer_mutex_;          // one consumer at a time
  mutable std::mutex producer_mutex_;  // the producer starts with the first batch
  std::unique_ptr<Producer> producer_;
  std::mutex stats_mutex_;
  Stats delivered_;  // batches, samples, bad ones, wait
};

}  // namespace forebay
