#pragma once

// What a sample is made to must not depend on how a pipeline is run: chains of stages, ways to run
// them, and what came out, sample by sample. To add a dimension, add a function like `batch_sizes`
// to `dimensions`.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include <forebay/ops/dropout_mask/dropout_mask.h>
#include <forebay/ops/noise/noise.h>
#include <forebay/ops/random_crop/random_crop.h>
#include <forebay/ops/random_flip/random_flip.h>
#include <forebay/ops/scale/scale.h>
#include <forebay/pipeline/fixture_test.h>

namespace forebay::test {

/// One way to run.
struct Way {
  std::string name = "as the spec says";
  std::function<void(Spec&)> change = [](Spec&) {};
  int shards = 1;
};

/// What one setting may be, the others as they are.
using Dimension = std::vector<Way>;

inline Dimension batch_sizes() {
  Dimension ways;
  for (const std::int64_t size : {1, 3, 64}) {
    ways.push_back({fmt::format("batch_size {}", size), [=](Spec& s) { s.batch_size = size; }});
  }
  return ways;
}
inline Dimension threads() {
  return {{"num_threads 1", [](Spec& s) { s.num_threads = 1; }},
          {"num_threads 7", [](Spec& s) { s.num_threads = 7; }}};
}
inline Dimension depths() {
  return {{"prefetch_queue_depth 1", [](Spec& s) { s.prefetch_queue_depth = 1; }},
          {"prefetch_queue_depth 5", [](Spec& s) { s.prefetch_queue_depth = 5; }}};
}
inline Dimension fusion() {
  return {{"fuse: false", [](Spec& s) { s.fuse = false; }}};
}
inline Dimension orders() {
  return {{"shuffle: full", [](Spec& s) { s.shuffle = ShuffleMode::full; }}};
}
inline Dimension shards() {
  Dimension ways;
  for (const int count : {2, 3})
    ways.push_back({fmt::format("{} shards", count), [](Spec&) {}, count});
  return ways;
}
/// Samples first..first+size-1 of another source.
class Stretch final : public Source {
 public:
  Stretch(SourcePtr all, std::int64_t first, std::int64_t size)
      : all_(std::move(all)), first_(first), size_(size) {}
  std::int64_t size() const override { return size_; }
  const std::vector<Column>& columns() const override { return all_->columns(); }
  std::string describe() const override { return "stretch"; }
  void read(std::span<const std::int64_t> indices,
            std::span<const ArrayView> targets) const override {
    std::vector<std::int64_t> samples(indices.begin(), indices.end());
    for (std::int64_t& sample : samples)
      sample += first_;
    all_->read(samples, targets);
  }

 private:
  SourcePtr all_;
  std::int64_t first_, size_;
};
/// The samples in two sources, put together or mixed: in proportions that draw each once an epoch.
inline Dimension sources() {
  const auto cut = [](Spec& s, bool mix) {
    const std::int64_t size = s.source->size(), first = size / 3;
    s.source = concat_source({{"a", std::make_shared<Stretch>(s.source, 0, first)},
                              {"b", std::make_shared<Stretch>(s.source, first, size - first)}});
    if (!mix) return;
    s.sampling.mode = SamplingMode::mix;
    s.sampling.proportions = {{"a", first}, {"b", size - first}};
  };
  return {{"two sources", [=](Spec& s) { cut(s, false); }},
          {"a mix of two sources", [=](Spec& s) { cut(s, true); }}};
}
inline std::vector<Dimension> dimensions() {
  return {batch_sizes(), threads(), depths(), fusion(), orders(), shards(), sources()};
}

/// The bytes of each field of each sample, by epoch and sample id.
using Samples = std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::string>>;

inline void collect(const Spec& spec, Samples& samples) {
  Pipeline pipeline = Pipeline::from_spec(spec);
  for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
    for (const Batch& batch : pipeline.epoch(epoch)) {
      std::vector<Array> hosts;
      for (const std::string& name : batch.names())
        hosts.push_back(kit::to_host(batch[name], kit::context(batch[name].device())));
      for (std::int64_t row = 0; row < batch.rows(); ++row) {
        std::vector<std::string> fields;
        for (const Array& host : hosts) {
          const std::size_t bytes = host.bytes() / static_cast<std::size_t>(batch.rows());
          fields.emplace_back(host.as<char>() + static_cast<std::size_t>(row) * bytes, bytes);
        }
        // A sample that a shard gets twice is the same both times.
        const auto id = batch.sample_ids()[static_cast<std::size_t>(row)];
        const auto [place, is_new] = samples.emplace(std::pair{epoch, id}, fields);
        EXPECT_TRUE(is_new || place->second == fields) << "sample " << id << ", epoch " << epoch;
      }
    }
  }
}

inline Samples run(Spec spec, const Way& way) {
  way.change(spec);
  Samples samples;
  for (int shard = 0; shard < way.shards; ++shard) {
    spec.shard = {.shard_id = shard, .num_shards = way.shards};
    collect(spec, samples);
  }
  return samples;
}

/// The same samples, and the same bytes of each.
inline testing::AssertionResult same(const Samples& got, const Samples& want) {
  for (const auto& [key, fields] : want) {
    const auto found = got.find(key);
    const auto where = fmt::format("sample {} of epoch {}", key.second, key.first);
    if (found == got.end()) return testing::AssertionFailure() << where << " is missing";
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (found->second[i] != fields[i])
        return testing::AssertionFailure() << "field " << i << " of " << where << " differs";
    }
  }
  if (got.size() != want.size())
    return testing::AssertionFailure() << got.size() << " samples instead of " << want.size();
  return testing::AssertionSuccess();
}

/// Images of bytes [3, 12, 10]: every random op, with pointwise neighbours on either side.
inline Spec random_spec(Device device, std::int64_t samples = 23) {
  Spec spec = counting_spec(
      device, array_source({{"image", kit::random({samples, 3, 12, 10}, Dtype::u8, 1, 0, 255)},
                            {"signal", kit::random({samples, 300}, Dtype::f32, 2)}}));
  spec.seed = 0x123456789ABCDEF0;
  spec.stages = {
      with(stage("scale", Scale{.factor = 1.0 / 255}), {"image"}, {"image"}),
      stage("noise", Noise{.std = 0.1}),
      stage("random_crop", RandomCrop{.axes = {2, 3}, .size = {8}, .padding = {1}, .value = 0.5}),
      stage("random_flip", RandomFlip{.axes = {-1}}),
      stage("noise", Noise{.distribution = NoiseKind::uniform, .low = -0.1, .high = 0.1}),
      clip(0),
      with(stage("noise", Noise{.mean = 1}), {"signal"}, {"signal"}),
      with(stage("random_flip", RandomFlip{.axes = {1}}), {"signal"}, {"turned"}),
      with(stage("dropout_mask", DropoutMask{.p = 0.3}), {"signal"}, {"mask"}),
  };
  return spec;
}

}  // namespace forebay::test
