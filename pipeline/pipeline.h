#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <forebay/pipeline/batch.h>
#include <forebay/pipeline/plan.h>
#include <forebay/pipeline/stats.h>

namespace forebay {

class Executor;
class LazyIdentity;
class PipelineBuilder;

/// How to run a plan; nothing in here changes a result.
struct Options {
  MemoryPtr memory = {};    ///< of the slots on the pipeline's device; its default pool when null
  bool time_steps = false;  ///< measure each step (events around it; CUDA graphs off)
  /// Fill a slot with 0xFF when it is returned, so that use after release shows.
  bool poison = false;
  bool cuda_graphs = true;  ///< replay the GPU part of a batch as one graph
};

/// How to treat a state of another pipeline or dataset.
struct RestoreOptions {
  bool allow_changes = false;  ///< go on all the same, at the same epoch and cursor
};

/// A declared pipeline, ready to deliver batches. Moveable; several may live in one process. Made
/// from a file or with the builder; threads and memory start with the first batch asked for.
class Pipeline {
 public:
  /// Reads, checks and compiles a YAML file.
  /// Errors: every mistake in it at once, with file:line:column.
  static Pipeline from_file(const std::string& path, const Options& options = {});
  static Pipeline from_spec(Spec spec, const Options& options = {});
  static PipelineBuilder build();  // pipeline/builder.h

  Pipeline(Pipeline&&) noexcept;
  Pipeline& operator=(Pipeline&&) noexcept;
  /// Stops and joins; never throws, never hangs. Batches that are still held stay valid.
  ~Pipeline();

  const Spec& spec() const;
  const Plan& plan() const;
  Device device() const;
  /// Batches of every epoch, the same on every shard.
  std::int64_t steps_per_epoch() const;

  /// Before the first batch: the slots' memory, such as LibTorch's own allocator. Ignored when
  /// Options named one.
  void set_default_memory(const MemoryPtr& memory);

  /// Goes to the start of `epoch`; batches of another epoch that were prepared ahead are dropped.
  /// Without a call the first epoch is 0.
  void start_epoch(std::int64_t epoch);
  /// The next batch of the epoch, ordered before later work on `consumer`; no value at the end
  /// of the epoch (the call after that begins the next epoch). On CUDA the host does not wait
  /// for the device.
  /// Errors: the first failure of any part, with stage, samples and batch; io for more bad samples
  /// than `on_error` allows; resource when the
  /// consumer holds more batches than `max_held_batches`; cancelled after `stop`.
  std::optional<Batch> next(const Stream& consumer);
  /// The same for a consumer on the host: returns when the batch is complete.
  std::optional<Batch> next();
  /// Makes a waiting `next()` in another thread throw; the pipeline delivers nothing more.
  void stop();
  Stats stats() const;

  /// Where `next()` goes on: after `restore`, the epoch to go on with.
  BatchPosition position() const;
  /// All that it takes to go on behind the batches that `next()` has given so far, in another
  /// process too: some hundred bytes of JSON, to be kept with the model that has learnt from those
  /// batches. It is the same on every shard, but for the count of bad samples where `on_error` is not
  /// fail. The first call reads some samples of the source.
  /// Errors: those of the source.
  std::string state() const;
  /// Goes on where `state()` was called: the same samples in the same batches, and the same bits on
  /// the same kind of device, at any depth and thread count. On another number of shards, or with
  /// another batch size, the samples go on in the same order. Until another epoch is started,
  /// `start_epoch` of its epoch, and so a loop over it, begins there; at an epoch's end it has no
  /// batch. What was stopped or has failed runs again, and statistics start anew. Batches that are
  /// held stay valid. Not while another thread is in a call. Errors: invalid for text that is no
  /// state, for a pipeline or dataset that is not that of the state, saying what has changed
  /// (unless `allow_changes`), and for a position that this dataset does not have.
  void restore(std::string_view state, const RestoreOptions& options = {});

  /// Iteration over one epoch: `for (Batch& batch : pipeline.epoch(3, stream))`.
  class Epoch;
  Epoch epoch(std::int64_t epoch, const Stream& consumer);
  Epoch epoch(std::int64_t epoch);

 private:
  explicit Pipeline(std::unique_ptr<Executor> executor);
  std::unique_ptr<Executor> executor_;
  std::shared_ptr<LazyIdentity> identity_;
};

class Pipeline::Epoch {
 public:
  struct End {};
  class Iterator {
   public:
    Batch& operator*() { return *batch_; }
    Iterator& operator++();
    bool operator!=(End) const { return batch_.has_value(); }

   private:
    friend class Epoch;
    Iterator(Pipeline& pipeline, const std::optional<Stream>& consumer);
    Pipeline* pipeline_;
    std::optional<Stream> consumer_;
    std::optional<Batch> batch_;
  };
  Iterator begin() { return {*pipeline_, consumer_}; }
  End end() const { return {}; }

 private:
  friend class Pipeline;
  Epoch(Pipeline& pipeline, std::optional<Stream> consumer)
      : pipeline_(&pipeline), consumer_(std::move(consumer)) {}
  Pipeline* pipeline_;
  std::optional<Stream> consumer_;
};

}  // namespace forebay

#include <forebay/pipeline/builder.h>
