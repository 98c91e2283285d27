#pragma once

#include <memory>
#include <span>
#include <string_view>

#include <forebay/pipeline/pipeline.h>

namespace forebay {

class Runner;
struct Machine;
struct Slot;

/// The steps of a plan over one set of buffers that stay where they are: no reading ahead, no
/// batches in flight. For data that is on the device already (write it to `input`), for one batch
/// by its sample ids (`read`), and for measuring the steps alone. The same prepared bodies, memory
/// and CUDA graph as in a pipeline.
///
/// Shapes, dtypes: those of the plan. Steps see epoch 0, batch 0.
/// Devices: the plan's; every step must run there. `run` enqueues on `stream()` and returns.
/// One caller at a time.
class Program {
 public:
  /// Prepares the steps and allocates their memory. Errors: unsupported when the device is not
  /// there, or for a plan with stages on both devices; an op's own, with its stage; resource.
  explicit Program(std::shared_ptr<const Plan> plan, const Options& options = {});
  /// Waits for what has been enqueued.
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  const Plan& plan() const { return *plan_; }
  /// What `run` enqueues on. Work on other streams is ordered with it by events.
  const Stream& stream() const;

  /// Where the steps read the column `name`, on the plan's device. It shares ownership of the
  /// memory, which lives longer than the program when the array does. Errors: invalid, with the
  /// names there are.
  Array input(std::string_view name) const;
  /// Where they leave the field `name` of the batch. Errors: likewise.
  Array output(std::string_view name) const;

  /// Fills the inputs and the sample ids with these samples of the spec's source, and returns
  /// when that is done.
  /// Errors: invalid when their number is not the batch size; whatever the source throws.
  void read(std::span<const std::int64_t> samples);
  /// Enqueues every step once. On a GPU the second call captures them, and from then on they are
  /// one graph launch.
  /// Errors: a step's own, with its stage; on the CPU `stream().synchronize()` throws it.
  void run();

 private:
  Array array_of(int value) const;
  void send(std::size_t bytes);

  const std::shared_ptr<const Plan> plan_;
  std::unique_ptr<Machine> machine_;
  std::unique_ptr<Runner> runner_;
  std::unique_ptr<Slot> slot_;
};

}  // namespace forebay
