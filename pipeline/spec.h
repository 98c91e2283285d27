#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <forebay/ops/op.h>
#include <forebay/pipeline/order/sampler.h>
#include <forebay/pipeline/source.h>

namespace forebay {

/// Where a part of a spec was written. Empty file: built in C++.
struct Position {
  std::string file;
  int line = 0;
  int column = 0;
};

/// `train.yaml:14:16`, or empty.
std::string to_string(const Position& position);

/// One op in the pipeline. Names that are not given follow the dataflow rule: a stage reads what
/// the stage before it wrote (the first one the first column) and rebinds the name it read.
struct StageSpec {
  Op op;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::optional<Device> device;  ///< the pipeline's own when not given
  Position position;
};

enum class ShuffleMode : std::uint8_t { none, full, window };
enum class SamplingMode : std::uint8_t {
  once,         ///< each sample once an epoch
  replacement,  ///< drawn from all alike
  weighted,     ///< drawn by weight
  mix,          ///< drawn from the parts of a source in stated proportions, see Mixture
};
/// Where an epoch of a mix ends.
enum class StoppingStrategy : std::uint8_t {
  samples,          ///< after `Sampling::samples`
  first_exhausted,  ///< before a source would begin again
  all_exhausted,    ///< when every source has been gone through
};

/// How many samples an epoch has, and how often each.
struct Sampling {
  SamplingMode mode = SamplingMode::once;
  /// Of an epoch, when they are drawn; 0: as many as there are to draw from.
  std::int64_t samples = 0;
  /// Mode weighted: one for each sample of the source, [size]; any real dtype.
  Array weights = {};
  /// Mode mix: the share of each part of the source, by name. They need no sum of 1.
  std::vector<std::pair<std::string, double>> proportions = {};
  StoppingStrategy stopping = StoppingStrategy::samples;  ///< mode mix
};

/// Positions begin..end-1 of an order.
struct Positions {
  std::int64_t begin = 0, end = 0;
};

/// What the values of a column must be, in every sample, as it is read from the source.
struct Check {
  std::string column;
  bool finite = false;             ///< no NaN and no infinity; of a complex number neither part
  std::optional<Number> min = {};  ///< at least; NaN is not. Whole numbers for integers, exactly
  std::optional<Number> max = {};  ///< at most; likewise
  Position position = {};
};

enum class ErrorMode : std::uint8_t {
  fail,     ///< `next()` throws
  skip,     ///< its row is not a real one
  replace,  ///< another sample of the epoch has its row
};

/// What a bad sample gives: one that the source cannot read (it throws), or that breaks a check.
///
/// A batch has as many rows as without bad samples, and an epoch as many steps, on every shard, so
/// that shards have nothing to agree upon. In the place of a bad sample stands a substitute: the
/// sample at another position of the epoch's order (of a mix, one of the same source), drawn from
/// Philox by (seed, epoch, position, attempt) until one is good. So it is the same one at any batch
/// size, depth, thread count and number of shards, and never one that `subset` or `split` leaves
/// out. `sample_ids()` has the substitute's. With `replace` it stands in the bad sample's row, a
/// real one. With `skip` the good rows close up in their order, and substitutes fill the batch
/// behind `real_rows()`.
///
/// More bad samples than the limit end the run, and so does a row for which 100 substitutes are bad:
/// `next()` throws. The limit counts the bad samples of one epoch in one process (a shard counts its
/// own), over interruptions too, since `state()` has the count; a new epoch begins with 0.
struct OnError {
  ErrorMode mode = ErrorMode::fail;
  std::optional<std::int64_t> max_count = {};  ///< bad samples that an epoch may have
  /// The same, as a share of the process's samples of an epoch, rounded down. With both, the smaller
  /// one holds; with neither, a share of 0.1.
  std::optional<double> max_share = {};
  /// A file of JSON lines, {"source", "index", "reason"}, one for each bad sample that was met in
  /// the place of a delivered one. Samples that it has already are not added, so it can be that of
  /// other runs, and of other processes at the same time. Lines are added whole; one that a crash
  /// left without its end is taken away.
  std::string quarantine = {};
};

/// What was asked for: the whole pipeline, unresolved. Plain data, from a file or from the builder.
struct Spec {
  std::string name = "pipeline";
  SourcePtr source;
  std::int64_t batch_size = 0;
  std::uint64_t seed = 0;
  std::optional<Device> device;  ///< auto when not given: the first CUDA device, else the CPU
  int num_threads = 0;           ///< of the CPU stream and of the readers; 0 is every core
  int prefetch_queue_depth = 2;  ///< batches ready ahead
  int max_held_batches = 16;  ///< batches that the consumer may hold at once before next() refuses
  ShuffleMode shuffle = ShuffleMode::none;
  std::int64_t shuffle_window = 0;  ///< positions, with ShuffleMode::window
  Sampling sampling;
  std::optional<Array> subset;         ///< the samples that take part, [count] integers; else all
  std::optional<Split> split;          ///< of those, the part that takes part
  std::optional<Positions> positions;  ///< of their order, what an epoch has; else all
  Shard shard;
  LastBatchPolicy last_batch_policy = LastBatchPolicy::partial;
  std::vector<Check> checks;
  OnError on_error;
  bool fuse = true;  ///< false: each stage is a step of its own, to look for a difference
  std::vector<StageSpec> stages;
  std::vector<std::string>
      output;  ///< fields of the batch; empty: every column and every field a stage wrote
  Position position;
  Position batch_size_position, source_position, output_position;
  Position shuffle_position, sampling_position, subset_position, split_position, shard_position;
  Position on_error_position;
};

}  // namespace forebay
