#pragma once

// What the pipeline's tests share: sources, ops that show what a step sees, and a watchdog.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <forebay/ops/cast/cast.h>
#include <forebay/ops/clip/clip.h>
#include <forebay/pipeline.h>
#include "kit/kit.h"

namespace forebay::test {

using namespace std::chrono_literals;

/// A test that hangs ends the program with its name instead.
class Watchdog {
 public:
  explicit Watchdog(std::chrono::seconds limit = 120s)
      : name_(std::string(testing::UnitTest::GetInstance()->current_test_info()->name())),
        thread_([this, limit] {
          std::unique_lock lock(mutex_);
          if (changed_.wait_for(lock, limit, [&] { return done_; })) return;
          std::fprintf(stderr, "%s hangs\n", name_.c_str());
          std::abort();
        }) {}
  ~Watchdog() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

 private:
  std::string name_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::thread thread_;
};

/// A door that tasks wait at until it is opened.
class Gate {
 public:
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

/// Columns `x` f32 [samples, width] with x[i][j] = 10 i + j, and `label` i64 [samples] with
/// label[i] = i.
class CountingSource final : public Source {
 public:
  explicit CountingSource(std::int64_t size, std::int64_t width = 3)
      : size_(size), columns_{{"x", Dtype::f32, {width}}, {"label", Dtype::i64, {}}} {}

  std::int64_t size() const override { return size_; }
  const std::vector<Column>& columns() const override { return columns_; }
  std::string describe() const override { return "counting"; }
  std::int64_t grain() const override { return grain_; }
  void read(std::span<const std::int64_t> indices,
            std::span<const ArrayView> targets) const override {
    if (on_read_) on_read_(indices);
    const std::int64_t width = columns_[0].shape[0];
    for (std::size_t row = 0; row < indices.size(); ++row) {
      for (std::int64_t j = 0; j < width; ++j) {
        targets[0].as<float>()[static_cast<std::int64_t>(row) * width + j] = value(indices[row], j);
      }
      targets[1].as<std::int64_t>()[row] = indices[row];
    }
    samples_read += static_cast<std::int64_t>(indices.size());
  }
  static float value(std::int64_t sample, std::int64_t j) {
    return static_cast<float>(10 * sample + j);
  }

  /// Called before samples are read, on the reader's threads.
  std::function<void(std::span<const std::int64_t>)> on_read_;
  std::int64_t grain_ = 2;
  mutable std::atomic<std::int64_t> samples_read{0};

 private:
  std::int64_t size_;
  std::vector<Column> columns_;
};

/// Settings of the ops below.
struct Hook {
  std::function<void(const BatchInfo&)> call;
};

std::vector<ArraySpec> infer_same(const Hook&, std::span<const ArraySpec> inputs);
std::vector<ArraySpec> infer_probe(const Hook&, std::span<const ArraySpec> inputs);

/// Copies its input to its output after calling the hook.
class SameBody final : public Body {
 public:
  explicit SameBody(Hook hook) : hook_(std::move(hook)) {}
  void run(std::span<const ArrayView> inputs, std::span<const ArrayView> outputs,
           const Launch& launch) override {
    if (hook_.call) hook_.call(*launch.batch);
    if (launch.stream.device().is_cuda()) {
      copy(inputs[0], outputs[0], launch.stream);
    } else {
      std::memcpy(outputs[0].data, inputs[0].data, inputs[0].bytes());
    }
  }

 private:
  Hook hook_;
};

/// Writes the sample ids and the position of the batch that a step sees.
class ProbeBody final : public Body {
 public:
  void run(std::span<const ArrayView>, std::span<const ArrayView> outputs,
           const Launch& launch) override {
    const ArrayView from[] = {launch.batch->sample_ids, launch.batch->position};
    for (int i = 0; i < 2; ++i) {
      if (outputs[i].data == nullptr) continue;
      if (launch.stream.device().is_cuda()) {
        copy(from[i], outputs[i], launch.stream);
      } else {
        std::memcpy(outputs[i].data, from[i].data, from[i].bytes());
      }
    }
  }
};

inline std::unique_ptr<Body> make_same(const Op& op, const Problem&, const Context&) {
  return std::make_unique<SameBody>(op.settings<Hook>());
}
inline std::unique_ptr<Body> make_probe(const Op&, const Problem&, const Context&) {
  return std::make_unique<ProbeBody>();
}
inline std::vector<ArraySpec> infer_same(const Hook&, std::span<const ArraySpec> inputs) {
  return {inputs[0]};
}
inline std::vector<ArraySpec> infer_probe(const Hook&, std::span<const ArraySpec> inputs) {
  return {{Dtype::i64, {inputs[0].shape[0]}}, {Dtype::i64, {3}}};
}

inline OpDef hook_def(OpDef def) {
  def.make = [] { return std::static_pointer_cast<void>(std::make_shared<Hook>()); };
  def.fields = [](void*, FieldVisitor&) {};
  return def;
}
template <auto Infer>
std::vector<ArraySpec> infer_hook(const void* settings, std::span<const ArraySpec> inputs) {
  return Infer(*static_cast<const Hook*>(settings), inputs);
}

/// `same`: a kernel op that copies. `probe`: outputs `ids` and `position`. `cpu_only`: as same,
/// without a CUDA body.
inline const OpEntry& same_op() {
  static const OpEntry entry{hook_def({.name = "same", .infer = infer_hook<infer_same>}), make_same,
                             make_same};
  return entry;
}
inline const OpEntry& probe_op() {
  static const OpEntry entry{
      hook_def({.name = "probe", .outputs = {"ids", "position"}, .infer = infer_hook<infer_probe>}),
      make_probe, make_probe};
  return entry;
}
inline const OpEntry& cpu_only_op() {
  static const OpEntry entry{hook_def({.name = "cpu_only", .infer = infer_hook<infer_same>}),
                             make_same, nullptr};
  return entry;
}

inline StageSpec stage(const OpEntry& op, std::function<void(const BatchInfo&)> call = {}) {
  return {.op = Op::with(op, Hook{std::move(call)}),
          .inputs = {},
          .outputs = {},
          .device = {},
          .position = {}};
}
template <class S>
StageSpec stage(std::string_view op, const S& settings) {
  return {.op = Op::with(find_op(op), settings),
          .inputs = {},
          .outputs = {},
          .device = {},
          .position = {}};
}

/// 20 samples in batches of 6: 3 whole ones and 2 samples.
inline Spec counting_spec(Device device, SourcePtr source = std::make_shared<CountingSource>(20)) {
  Spec spec;
  spec.name = "test";
  spec.source = std::move(source);
  spec.batch_size = 6;
  spec.device = device;
  spec.num_threads = 2;
  return spec;
}

inline std::shared_ptr<const Plan> plan_of(Spec spec) {
  return compile(std::make_shared<const Spec>(std::move(spec)));
}
inline std::shared_ptr<const Plan> plan_of(Spec spec, std::int64_t rows) {
  return compile_for(*plan_of(std::move(spec)), rows);
}

inline StageSpec with(StageSpec stage, std::vector<std::string> inputs,
                      std::vector<std::string> outputs) {
  stage.inputs = std::move(inputs);
  stage.outputs = std::move(outputs);
  return stage;
}

inline StageSpec clip(double low) { return stage("clip", Clip{.min = low}); }

/// Integers of an array of a batch, on the host.
inline std::vector<std::int64_t> integers(const Array& x) {
  const Context context = kit::context(x.device());
  const Array host = kit::to_host(x, context);
  std::vector<std::int64_t> result;
  for (std::int64_t i = 0; i < host.count(); ++i)
    result.push_back(static_cast<std::int64_t>(kit::value(host.view(), i)));
  return result;
}

inline std::vector<std::int64_t> ids_of(const Batch& batch) {
  return {batch.sample_ids().begin(), batch.sample_ids().end()};
}

/// The labels and x of `batch` are those of its sample ids.
inline testing::AssertionResult is_intact(const Batch& batch, double shift = 0) {
  const std::vector<std::int64_t> ids = ids_of(batch);
  if (integers(batch["label"]) != ids)
    return testing::AssertionFailure() << "the labels are not the sample ids";
  const Array x = batch["x"];
  std::vector<double> want;
  for (const std::int64_t id : ids) {
    for (std::int64_t j = 0; j < x.shape()[1]; ++j)
      want.push_back(CountingSource::value(id, j) + shift);
  }
  return kit::near(kit::to_host(x, kit::context(x.device())), want, 0);
}

/// Each test runs on both devices and may not take forever.
class PipelineTest : public kit::DeviceTest {
 protected:
  void SetUp() override { watchdog_ = std::make_unique<Watchdog>(); }
  void TearDown() override { watchdog_.reset(); }

 private:
  std::unique_ptr<Watchdog> watchdog_;
};

}  // namespace forebay::test
