#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <forebay/array/array.h>
#include <forebay/ops/expr/expression.h>
#include <forebay/ops/fields.h>

namespace forebay {

/// What is known of an array before there is data.
struct ArraySpec {
  Dtype dtype = Dtype::f32;
  Dims shape;
  friend bool operator==(const ArraySpec&, const ArraySpec&) = default;
};

/// The batch that a step works on, for ops that depend on the epoch or on which samples they see.
struct BatchInfo {
  std::uint64_t seed = 0;
  std::int64_t epoch = 0;
  std::int64_t batch = 0;
  ArrayView sample_ids;  ///< i64 [batch size], on the device of the step
  /// i64 [3]: epoch, batch and the seed's bits, on the device of the step. A CUDA body that depends
  /// on them reads them from here: its launches are replayed for later batches with the scalars of
  /// the first.
  ArrayView position;
};

/// What a body gets at each run besides its arrays.
struct Launch {
  const Stream& stream;
  void* scratch = nullptr;  ///< Body::scratch_bytes() bytes aligned to 256, on the stream's device
  const BatchInfo* batch = nullptr;  ///< null outside a pipeline
};

/// A kernel op prepared for one set of shapes on one device: compiled kernels, library plans,
/// constants. Prepared once, run for every batch, from one stream at a time.
class Body {
 public:
  virtual ~Body() = default;
  virtual std::size_t scratch_bytes() const { return 0; }
  /// CUDA: enqueues on launch.stream and returns; allocates nothing, waits for nothing.
  /// CPU: runs in a task of launch.stream and returns when done; uses parallel_for for its tiles.
  /// Inputs (the step's sources) and outputs are dense, do not overlap, and have the shapes and
  /// dtypes of the Problem.
  virtual void run(std::span<const ArrayView> inputs, std::span<const ArrayView> outputs,
                   const Launch& launch) = 0;
};

/// What `prepare` is asked for: the op on arrays of these specs, with what the planner fused into
/// it. A body's `run` gets the step's sources. Nothing fused: they are the op's inputs, dense.
struct Problem {
  std::vector<ArraySpec> inputs;
  std::vector<ArraySpec> outputs;  ///< as `infer` gave them
  /// For each input, its elements as an expression over the step's sources. Empty: sources
  /// are the inputs.
  std::vector<expr::Expr> prologue = {};
  /// What is stored for output 0, same shape: an expression whose source 0 is the op's own result,
  /// dense, and whose source 1 + i is the step's source i. Invalid: the result itself.
  expr::Expr epilogue = {};

  /// How input `i` is read and output 0 written, whatever is fused: a program with one output.
  expr::Program load(std::size_t i) const;
  expr::Program store() const;
  /// Output 0 as it lies in memory.
  ArraySpec stored() const;
};

/// Which pointwise neighbours a kernel op's body on a device takes in. Only for bodies that read
/// inputs through Problem::load and write output 0 through Problem::store.
struct Fusion {
  bool prologue = false;
  bool epilogue = false;
};

struct OpEntry;
class Materialise;

/// An op with its settings. Cheap to copy; the settings do not change.
class Op {
 public:
  Op(const OpEntry& entry, std::shared_ptr<const void> settings)
      : entry_(&entry), settings_(std::move(settings)) {}
  /// `settings` is the op's own struct, such as Clip.
  template <class S>
  static Op with(const OpEntry& entry, const S& settings) {
    return Op(entry, std::make_shared<S>(settings));
  }
  const OpEntry& entry() const { return *entry_; }
  std::string_view name() const;
  template <class S>
  const S& settings() const {
    return *static_cast<const S*>(settings_.get());
  }
  const void* raw_settings() const { return settings_.get(); }

  /// Names of what it reads: its definition's, or those that its settings name.
  /// Errors: invalid for settings that are wrong, with the op's name first.
  std::vector<std::string> inputs() const;
  /// How many of them it needs, from the first.
  std::size_t required_inputs() const;

  /// Shapes and dtypes of the outputs. Pure. Errors: invalid and unsupported, with the op's
  /// name first.
  std::vector<ArraySpec> infer(std::span<const ArraySpec> inputs) const;
  /// One expression for each output, or nothing when the op (with these settings) has a
  /// body instead.
  std::vector<expr::Expr> lower(std::span<const expr::Expr> inputs, Materialise& materialise) const;

 private:
  const OpEntry* entry_;
  std::shared_ptr<const void> settings_;
};

/// Makes an expression dense memory, for index maps that the memory's layout does not allow (a
/// reshape of a permuted array): the planner adds a step, an eager call a temporary.
class Materialise {
 public:
  virtual ~Materialise() = default;
  virtual expr::Expr operator()(const expr::Expr& expression) = 0;
};

/// An op as its folder declares it, by a function `OpDef clip_def();` that calls `define_op`.
struct OpDef {
  std::string_view name = {};     ///< NumPy's, where it has one
  std::string_view summary = {};  ///< one sentence
  std::string_view alias = {};    ///< another library's name, accepted with a note
  /// A stage as YAML, "{op: clip, min: -3, max: 3}": `explain` prints it, tests run it.
  std::string_view example = {};
  std::vector<std::string_view> inputs = {"x"};  ///< names for errors and `explain`
  /// Likewise. A stage names as many as it wants, from the first; `infer` gives all, and a body
  /// gets a null data pointer for those that nobody reads.
  std::vector<std::string_view> outputs = {"out"};
  int optional_inputs = 0;  ///< how many of the last inputs may be left out
  /// For an op whose settings name what it reads: those names, in the order of its inputs, which
  /// are all needed. `inputs` are then those of `example`. Null for others.
  std::vector<std::string> (*names_inputs)(const void* settings) = nullptr;

  std::shared_ptr<void> (*make)() = nullptr;
  void (*fields)(void* settings, FieldVisitor& visitor) = nullptr;
  std::vector<ArraySpec> (*infer)(const void* settings,
                                  std::span<const ArraySpec> inputs) = nullptr;
  /// Pointwise ops and index maps: one expression for each output. Null for kernel ops, which have
  /// bodies instead; an op that is pointwise only with some settings returns nothing for the others
  /// (normalize with constants).
  std::vector<expr::Expr> (*lower)(const void* settings, std::span<const expr::Expr> inputs,
                                   Materialise& materialise) = nullptr;
  /// Kernel ops: what a body on `device` fuses, with these settings and shapes. Null: nothing.
  /// Needs no device.
  Fusion (*fuses)(const void* settings, const Problem& problem, DeviceKind device) = nullptr;
  /// Whether a row of the result depends on other rows of the batch (axis 0), so that it changes
  /// with the batch size and the order: `plan` says so. Null: only results without a batch axis do.
  bool (*mixes_samples)(const void* settings, std::span<const ArraySpec> inputs) = nullptr;
  /// A random op's number, 1 to 255, by which its random words differ from those of other ops
  /// (random.h): no two ops have the same, and it stays. 0: the op is not random. To the inputs that
  /// `lower` and bodies of a random op get, two are appended: the sample ids, i64 [N], and the
  /// position, i64 [3], as in BatchInfo. `infer` does not get them.
  int draws = 0;
  /// Random ops: the settings with this `stream` where they do not name one: which of several
  /// stages of the op it is, so that their words differ.
  std::shared_ptr<const void> (*with_stream)(const void* settings, std::int64_t stream) = nullptr;
};

using PrepareFn = std::unique_ptr<Body>(const Op& op, const Problem& problem,
                                        const Context& context);

/// One row of the registry that CMake generates from the folders of ops/. A body is null where its
/// source file does not exist or was left out of this build.
struct OpEntry {
  OpDef def;                  ///< `<op>_def()` in <op>.cpp
  PrepareFn* cpu = nullptr;   ///< `<op>_cpu` in <op>_cpu.cpp
  PrepareFn* cuda = nullptr;  ///< `<op>_cuda` in <op>_cuda.cpp

  PrepareFn* body(DeviceKind kind) const { return kind == DeviceKind::cpu ? cpu : cuda; }
};

/// Fills in the functions of an OpDef from an op's settings struct S and two or one free functions:
///     std::vector<ArraySpec> infer(const S&, std::span<const ArraySpec>);
///     std::vector<expr::Expr> lower(const S&, std::span<const expr::Expr>, Materialise&);      // pointwise ops
template <class S, auto Infer, auto Lower = nullptr>
OpDef define_op(OpDef text) {
  text.make = [] { return std::static_pointer_cast<void>(std::make_shared<S>()); };
  text.fields = [](void* settings, FieldVisitor& visitor) {
    static_cast<S*>(settings)->fields(visitor);
  };
  text.infer = [](const void* settings, std::span<const ArraySpec> inputs) {
    return Infer(*static_cast<const S*>(settings), inputs);
  };
  if constexpr (requires(S& settings) { settings.stream; }) {
    text.with_stream = [](const void* settings,
                          std::int64_t stream) -> std::shared_ptr<const void> {
      auto result = std::make_shared<S>(*static_cast<const S*>(settings));
      result->stream = result->stream.value_or(stream);
      return result;
    };
  }
  if constexpr (Lower != nullptr) {
    text.lower = [](const void* settings, std::span<const expr::Expr> inputs,
                    Materialise& materialise) {
      return Lower(*static_cast<const S*>(settings), inputs, materialise);
    };
  }
  return text;
}

}  // namespace forebay
