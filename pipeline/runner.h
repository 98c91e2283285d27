#pragma once

// Internal: a plan with its bodies prepared, and how its steps run over a slot.

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <forebay/array/cuda/graph.h>
#include <forebay/pipeline/lease.h>
#include <forebay/pipeline/machine.h>
#include <forebay/pipeline/stats.h>

namespace forebay {

/// What one plan needs of one slot, made at its first use there.
struct Binding {
  struct Step {
    std::vector<ArrayView> inputs, outputs;
    Event begin, end;    ///< with time_steps, of a step on the GPU
    bool timed = false;  ///< they have been recorded and not been read
  };
  std::vector<Step> steps;
  BatchInfo on_cpu, on_gpu;
  std::vector<std::shared_ptr<cuda::Graph>> graphs;  ///< by segment
};

class Runner {
 public:
  /// Prepares all bodies. `number` counts the plans of the pipeline. Errors: an op's own, with its
  /// stage.
  Runner(std::shared_ptr<const Plan> plan, int number, const Machine& machine);
  ~Runner();

  /// Runs every step after the load. GPU steps are enqueued behind `slot.copied`, and `slot.ready`
  /// is recorded behind them; CPU steps are done on return, in the task of the CPU stream that
  /// calls this. One call at a time. Errors: a step's own, with stage, epoch and batch.
  void run(Slot& slot, BatchPosition position);

  const Plan& plan() const { return *plan_; }
  const MemoryMap& map() const { return map_; }
  const std::shared_ptr<const BatchFields>& fields() const { return fields_; }
  /// A value in `slot`, or in the shared memory.
  ArrayView view(int value, const Slot& slot) const;
  /// Adds to `stats.steps` (in the order of the plan) and the graph counts. With time_steps it
  /// waits for the GPU.
  void add_to(Stats& stats);

 private:
  /// Steps that follow each other on the same kind of device.
  struct Segment {
    bool gpu = false;
    std::size_t begin = 0, end = 0;
    /// Once, without a graph: libraries have made what they make at their first run.
    bool ran = false;
    std::string label;  ///< of its graph in a profile
  };

  void prepare(std::size_t step);
  void find_segments();
  Binding& bind(Slot& slot);
  void run_step(std::size_t step, Binding& binding);
  void run_on_gpu(std::size_t number, Binding& binding);
  void run_on_cpu(const Segment& segment, Binding& binding);
  void read_time(std::size_t number, Binding::Step& step);
  std::string title(std::size_t step) const;

  const std::shared_ptr<const Plan> plan_;
  const int number_;
  const Machine& machine_;
  const MemoryMap map_;
  const std::shared_ptr<const BatchFields> fields_;
  std::vector<std::unique_ptr<Body>> bodies_;  // by step; null for copies
  Array scratch_host_, scratch_device_;
  std::vector<Segment> segments_;

  std::mutex mutex_;  // the rest
  std::vector<std::weak_ptr<Binding>> bindings_;
  std::vector<Stats::Step> times_;
  std::int64_t replays_ = 0;
  std::string graph_fallback_;
};

}  // namespace forebay
