#pragma once

// Internal: the samples of a batch, from the source to its rows, and what becomes of bad ones.

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <forebay/pipeline/plan.h>
#include <forebay/pipeline/stats.h>
#include <forebay/pipeline/value_checks.h>

namespace forebay {

/// What a batch has missed.
struct Losses {
  std::vector<BadSample> samples;  ///< of its real rows, in their order
  std::string hopeless;            ///< why there is no substitute for one; else empty
};

/// Bad samples that this process may have in an epoch.
std::int64_t limit_of(const OnError& on_error, const Sampler& sampler);

class RowReader {
 public:
  /// For all batches of the pipeline that `plan` is of.
  explicit RowReader(std::shared_ptr<const Plan> plan);

  /// The rows of a batch.
  struct Rows {
    std::int64_t count;
    std::int64_t* ids;               ///< of the samples to be read; becomes those that are there
    std::vector<ArrayView> columns;  ///< dense host arrays [count, ...], as the source has them
  };

  /// Reads in parallel, from inside a task of a CPU stream. `go_on` throws when nobody wants the
  /// batch any more. Values are undefined when something is hopeless, or more samples are bad than
  /// the limit allows. Errors: mode fail: for the first bad sample; else those that are no sample's
  /// fault. Each names the samples and the batch.
  Losses read(const BatchPosition& position, const Rows& rows,
              const std::function<void()>& go_on) const;

  /// Whether the batch can be delivered, as far as it alone can tell.
  bool allows(const Losses& losses) const {
    return losses.hopeless.empty() && static_cast<std::int64_t>(losses.samples.size()) <= limit_;
  }

 private:
  /// A row whose sample is bad, and why.
  using BadRow = std::pair<std::int64_t, std::string>;

  void read_block(const BatchPosition& position, const Rows& rows, std::int64_t begin,
                  std::int64_t end) const;
  std::string read_row(const BatchPosition& position, const Rows& rows, std::int64_t row) const;
  std::vector<BadRow> find_bad(const BatchPosition& position, const Rows& rows,
                               const std::function<void()>& go_on) const;
  std::string substitute(const BatchPosition& position, const Rows& rows,
                         const std::vector<BadRow>& bad, const std::function<void()>& go_on) const;

  const std::shared_ptr<const Plan> plan_;
  const Source& source_;
  const OnError& on_error_;
  const ValueChecks checks_;
  const std::int64_t limit_;
};

}  // namespace forebay
