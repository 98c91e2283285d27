#pragma once

#include <optional>
#include <string>
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
};

/// How many samples an epoch has, and how often each.
struct Sampling {
  SamplingMode mode = SamplingMode::once;
  /// Of an epoch, when they are drawn; 0: as many as there are to draw from.
  std::int64_t samples = 0;
  /// Mode weighted: one for each sample of the source, [size]; any real dtype.
  Array weights = {};
};

/// Positions begin..end-1 of an order.
struct Positions {
  std::int64_t begin = 0, end = 0;
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
  std::optional<Array> subset;  ///< the samples that take part, [count] integers; else all
  std::optional<Split> split;   ///< of those, the part that takes part
  std::optional<Positions> positions;  ///< of their order, what an epoch has; else all
  Shard shard;
  LastBatchPolicy last_batch_policy = LastBatchPolicy::partial;
  bool fuse = true;  ///< false: each stage is a step of its own, to look for a difference
  std::vector<StageSpec> stages;
  std::vector<std::string>
      output;  ///< fields of the batch; empty: every column and every field a stage wrote
  Position position;
  Position batch_size_position, source_position, output_position;
  Position shuffle_position, sampling_position, subset_position, split_position, shard_position;
};

}  // namespace forebay
