#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <forebay/pipeline/spec.h>

namespace forebay {

/// A value of the plan: one dense array that exists for each batch in flight (or, `temporary`, once
/// for the stream).
struct PlanValue {
  enum class Kind : std::uint8_t {
    column,     ///< read by the source, on the host (pinned where it travels to a GPU)
    copied,     ///< a value moved to another device
    temporary,  ///< between steps
    output,     ///< handed to the consumer
    view,       ///< the memory of another value under another shape
    sample_ids,  ///< of the batch, as in BatchInfo: they come with every batch
    position,    ///< likewise
  };
  Kind kind = Kind::temporary;
  std::string name;  ///< the field, for people
  ArraySpec spec;
  Device device;
  int column = -1;  ///< kind column: its number in the source
  int base = -1;    ///< kind view: the value whose memory it is
};

/// One unit of work of the plan, in order.
struct PlanStep {
  enum class Kind : std::uint8_t {
    /// What the GPU needs of the columns, in one copy on the copy stream; the first step, if any.
    load,
    copy,  ///< between the host and the GPU, on the compute stream
    pointwise,
    kernel,  ///< a kernel op, with the pointwise stages that are fused into it
  };
  Kind kind = Kind::pointwise;
  Device device = {};             ///< whose stream it runs on: of a copy, the GPU's
  std::vector<int> inputs = {};   ///< value numbers: the sources of the program or the problem
  std::vector<int> outputs = {};  ///< value numbers; -1 for an output of a kernel that nobody reads
  expr::Program program = {};     ///< pointwise
  Problem problem = {};           ///< kernel: the op's, with what is fused into it
  std::vector<int> stages = {};   ///< stage numbers of the spec that it carries out
  int kernel_stage = -1;          ///< kernel: the stage whose op it is
  std::string label = {};         ///< "normalize + clip", "copy image to cuda:0"
};

/// A field of the batch.
struct PlanOutput {
  std::string name;
  int value = -1;
};

/// The compiled, immutable program of a pipeline for one batch size. Printable; the executor only
/// follows it.
struct Plan {
  std::shared_ptr<const Spec> spec;
  std::shared_ptr<const Sampler> sampler;  ///< the same for every batch size
  std::int64_t batch_size = 0;             ///< rows of the batches that this plan is for
  Device device;
  std::vector<PlanValue> values;
  std::vector<PlanStep> steps;
  std::vector<PlanOutput> outputs;
  /// Some stage's results depend on which samples meet in a batch.
  bool mixes_samples = false;
  std::vector<std::string>
      notes;  ///< what did not fuse and why, statistics that mix samples, CPU fall-backs

  /// Bytes on the device (or the host, for a CPU pipeline) of one slot and of what is shared by all
  /// slots.
  std::size_t device_bytes_per_slot() const;
  std::size_t device_bytes_shared() const;
  /// Bytes of host memory that one slot stages columns in.
  std::size_t host_bytes_per_slot() const;
  /// Of the columns that travel to a GPU, for one batch.
  std::size_t copied_bytes() const;
  /// Bytes that the step reads and writes, each once: of an array that index maps read in
  /// part, that part.
  std::size_t bytes_moved(const PlanStep& step) const;
  int slots() const;  ///< allocated at start: the depth, one in use, one being filled
  /// Some step other than the load runs on this kind of device.
  bool has_steps_on(DeviceKind kind) const;
};

/// Checks everything that can be known without a GPU, and orders the work; the last, smaller batch
/// of an epoch is checked too. Reads no data but a column that a split goes by.
/// Errors: every mistake at once, a line each, with its position; kind invalid.
std::shared_ptr<const Plan> compile(std::shared_ptr<const Spec> spec);
/// The same pipeline for a last batch of `rows`. Errors: as compile.
std::shared_ptr<const Plan> compile_for(const Plan& plan, std::int64_t rows);

/// The plan as people read it: fields, steps with shapes and dtypes, devices, streams, bytes, what
/// is fused, notes. `bandwidth`, in bytes/s, read and written together: steps say the time that
/// their bytes take at it.
std::string to_string(const Plan& plan, std::optional<double> bandwidth = {});

}  // namespace forebay
