#pragma once

#include <string>
#include <utility>
#include <vector>

#include <forebay/ops.h>
#include <forebay/ops/registry.h>
#include <forebay/pipeline/pipeline.h>

namespace forebay {

/// Field names of one stage; empty follows the dataflow rule (see StageSpec).
struct StageFields {
  std::vector<std::string> inputs = {};  // so that naming some of them draws no warning
  std::vector<std::string> outputs = {};
  std::optional<Device> device = {};
};

/// Builds a Spec in C++. Every op is a method named as the op, which takes the op's settings:
///     Pipeline::build().source(s).batch_size(64).normalize({.mean = 0.13, .std = 0.31}).clip({.min = -3}).create()
class PipelineBuilder {
 public:
  PipelineBuilder& name(std::string name) {
    return set([&] { spec_.name = std::move(name); });
  }
  PipelineBuilder& source(SourcePtr source) {
    return set([&] { spec_.source = std::move(source); });
  }
  PipelineBuilder& batch_size(std::int64_t rows) {
    return set([&] { spec_.batch_size = rows; });
  }
  PipelineBuilder& seed(std::uint64_t seed) {
    return set([&] { spec_.seed = seed; });
  }
  PipelineBuilder& device(Device device) {
    return set([&] { spec_.device = device; });
  }
  PipelineBuilder& num_threads(int threads) {
    return set([&] { spec_.num_threads = threads; });
  }
  PipelineBuilder& prefetch_queue_depth(int depth) {
    return set([&] { spec_.prefetch_queue_depth = depth; });
  }
  PipelineBuilder& max_held_batches(int batches) {
    return set([&] { spec_.max_held_batches = batches; });
  }
  /// `window`: positions, with ShuffleMode::window.
  PipelineBuilder& shuffle(ShuffleMode mode, std::int64_t window = 0) {
    return set([&] {
      spec_.shuffle = mode;
      spec_.shuffle_window = window;
    });
  }
  PipelineBuilder& sampling(Sampling sampling) {
    return set([&] { spec_.sampling = std::move(sampling); });
  }
  /// Only these samples, [count] integers, take part.
  PipelineBuilder& subset(Array indices) {
    return set([&] { spec_.subset = std::move(indices); });
  }
  PipelineBuilder& split(Split split) {
    return set([&] { spec_.split = std::move(split); });
  }
  PipelineBuilder& shard(Shard shard) {
    return set([&] { spec_.shard = shard; });
  }
  PipelineBuilder& last_batch_policy(LastBatchPolicy policy) {
    return set([&] { spec_.last_batch_policy = policy; });
  }
  /// Another check of a column: `.check({.column = "label", .min = 0, .max = 9})`.
  PipelineBuilder& check(Check check) {
    return set([&] { spec_.checks.push_back(std::move(check)); });
  }
  PipelineBuilder& on_error(OnError on_error) {
    return set([&] { spec_.on_error = std::move(on_error); });
  }
  PipelineBuilder& fuse(bool on) {
    return set([&] { spec_.fuse = on; });
  }
  PipelineBuilder& output(std::vector<std::string> fields) {
    return set([&] { spec_.output = std::move(fields); });
  }

  /// Adds a stage with any op's settings; `op` is its name in the registry.
  template <class S>
  PipelineBuilder& stage(std::string_view op, const S& settings, StageFields fields = {}) {
    return set([&] {
      spec_.stages.push_back({.op = Op::with(find_op(op), settings),
                              .inputs = std::move(fields.inputs),
                              .outputs = std::move(fields.outputs),
                              .device = fields.device,
                              .position = {}});
    });
  }

#include <forebay/builder_methods.inc>  // generated from the folders of ops/: one method an op

  const Spec& spec() const { return spec_; }
  /// Errors: as Pipeline::from_spec.
  Pipeline create(const Options& options = {}) { return Pipeline::from_spec(spec_, options); }

 private:
  template <class F>
  PipelineBuilder& set(F change) {
    change();
    return *this;
  }
  Spec spec_;
};

}  // namespace forebay
