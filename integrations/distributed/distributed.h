#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <forebay/pipeline/pipeline.h>
#include <forebay/pipeline/ranks.h>

namespace at {
class Tensor;
}

// Many processes that train together, one for each GPU, started by torchrun:
//     torchrun --no-python --nproc-per-node 4 ./program
// See integrations/distributed/README.md.
namespace forebay::distributed {

struct JoinOptions {
  /// A rank that is not heard of for so long is lost, and the others end. At least 100 ms.
  std::chrono::milliseconds timeout = std::chrono::seconds(30);
  /// How long `join` waits for the other ranks to start.
  std::chrono::milliseconds start_timeout = std::chrono::minutes(5);
};

/// Numbers of one rank, by name.
using Metrics = std::vector<std::pair<std::string, double>>;

/// What a run says of itself, as metrics: batches, samples, wait_ms and so on.
Metrics metrics_of(const Stats& stats);

/// One number over all ranks.
struct RankMetric {
  std::string name;
  double sum = 0, min = 0, max = 0;
  int min_rank = 0, max_rank = 0;  ///< the first that has it
};

/// A table of them, a line each.
std::string to_text(const std::vector<RankMetric>& metrics);

/// This process among those of the run. What ranks tell each other are small texts through the
/// store that torchrun keeps, and gradients through Gloo; every rank makes the same calls in the
/// same order. They also watch each other: when one ends before its `Ranks` does, is killed, or
/// leaves by an exception, every other prints a line that says so and ends with exit code 1, at once
/// or within `JoinOptions::timeout`, wherever it waits: for data, in a collective, in the user's own
/// code. With one rank every call returns what it was given.
///
/// Of one thread; moveable. The destructor says that this rank is done, or when an exception ends it
/// that it has failed; where this rank keeps the store, it waits for the others.
class Ranks final : public RankGroup {
 public:
  Ranks(Ranks&&) noexcept;
  Ranks& operator=(Ranks&&) noexcept;
  ~Ranks() override;

  int rank() const override;
  int size() const override;
  bool is_first() const { return rank() == 0; }
  int local_rank() const;  ///< on this machine
  /// The GPU number LOCAL_RANK, counted around when there are fewer; the CPU without any.
  Device device() const override;
  Shard shard() const { return {rank(), size()}; }

  /// The pipeline of a file, or of a spec, for this rank: its shard, and where `device` is auto its
  /// `device()`. Checked as by `check`, so that a mistake in one rank's file, too, is thrown by all.
  Pipeline pipeline(const std::string& path, const Options& options = {});
  Pipeline pipeline(Spec spec, const Options& options = {});

  /// That the ranks do the same: version of Forebay, seed, order, stages and their arrays, output,
  /// dataset with its fingerprint, batch size, and where the pipeline stands; and that each has its
  /// own shard. Call it again behind `restore`. Errors: invalid on every rank, with one text that
  /// says which ranks have what.
  void check(const Pipeline& pipeline);

  /// The text of every rank, in their order. Errors: invalid when another rank is in another call,
  /// or has left.
  std::vector<std::string> gather(const std::string& text);
  std::vector<std::string> collect(const std::string& text) override;
  std::string broadcast(const std::string& text) override;
  /// Returns when every rank is here.
  void barrier();
  /// Every rank gives the same names. Errors: invalid when they differ.
  std::vector<RankMetric> gather(const Metrics& mine);

  /// Replaces the gradient of each parameter by its mean over all ranks, weighted by `weight`:
  /// with `batch.real_rows()` and a loss that is the mean over those rows, it is the gradient of the
  /// mean over the global batch. A parameter without a gradient counts as zeros. The same bits on
  /// every rank, by one reduction of all parameters of a dtype through Gloo, on the host; for
  /// large models on several GPUs LibTorch's NCCL group is faster. Errors: invalid when no rank has
  /// a weight above 0, or parameters differ; io when a rank is gone.
  void average_gradients(const std::vector<at::Tensor>& parameters, double weight);

 private:
  friend Ranks join(const JoinOptions& options);
  struct Impl;
  explicit Ranks(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Joins the ranks that the environment speaks of: RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and
/// MASTER_PORT, as torchrun sets them; without RANK and WORLD_SIZE this is the only one. Returns when
/// all are there. Unless TORCHELASTIC_USE_AGENT_STORE is True, rank 0 keeps the store.
/// Errors: invalid for a variable that is missing or wrong, and for options out of range; io when
/// the store cannot be reached or ranks do not come within `start_timeout`, naming them.
Ranks join(const JoinOptions& options = {});

}  // namespace forebay::distributed
