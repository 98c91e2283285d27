#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <forebay/ops/fields.h>
#include <forebay/pipeline/ranks.h>
#include <forebay/pipeline/spec.h>

// Statistics of a whole dataset in one pass, exact, the same bits whatever the batch size, the
// device, the threads and the ranks. See pipeline/fit/README.md.
namespace forebay {

/// What to take statistics of: fields as they are behind the last stage of a spec.
struct FitSettings {
  std::vector<std::string> fields = {};  ///< empty: every real field that there is
  /// One set of statistics for each index of this axis of the batch array; axis 0 is the samples.
  std::optional<std::int64_t> channels = {};
  /// Of values wider than 16 bits: how fine their distribution is kept (`bits` of the op tally).
  /// Without a value as fine as 64 MiB of tables allow, at most 7 for floats and 10 for integers.
  std::optional<std::int64_t> bits = {};
  /// Samples at once; 0: the spec's, or without stages some 32 MiB of them.
  std::int64_t batch_size = 0;
};

/// What a pass over some of a dataset's samples has found; copies share it. As JSON it goes to a
/// file or to another rank.
class FitPartial {
 public:
  std::string to_json() const;
  /// `file` begins the errors. Errors: invalid for a text that to_json did not write.
  static FitPartial from_json(const std::string& text, const std::string& file);

  std::int64_t samples_done() const;
  std::int64_t samples() const;  ///< of the dataset

  struct State;  ///< internal: fit/state.h
  explicit FitPartial(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  const State& state() const { return *state_; }

 private:
  std::shared_ptr<const State> state_;
};

struct FitHooks {
  /// At the start and after each batch: samples of this pass that are done, and all of them.
  std::function<void(std::int64_t done, std::int64_t total)> on_progress = {};
  /// At most every `state_seconds`, and at the end: what is known so far, to go on from.
  std::function<void(const FitPartial& partial)> on_state = {};
  double state_seconds = 60;
};

/// Passes once over the samples of the spec's subset and split, each once; of several shards, this
/// one has a contiguous part of them. `begun`: what an earlier pass had found, whose samples are
/// left out. Errors: invalid for a field that is not there or not real, an axis that is
/// not there, and a `begun` of other data, stages or settings; those of the pipeline. Bad samples
/// are left out where `on_error` is skip or replace, unless a stage mixes samples: then the first one
/// is an error.
FitPartial fit(const Spec& spec, const FitSettings& settings = {}, const FitHooks& hooks = {},
               const FitPartial* begun = nullptr);

/// The same pass by many processes, each over its part; every rank makes the call and gets the whole,
/// with the very bits of one process. `hooks` and `begun` are of this rank's part. Errors: as fit.
FitPartial fit(RankGroup& ranks, Spec spec, const FitSettings& settings = {},
               const FitHooks& hooks = {}, const FitPartial* begun = nullptr);

/// All of them together; any order gives the same. Errors: invalid without any, for those of
/// different data, stages or settings, and for samples that two of them have.
FitPartial merge(std::span<const FitPartial> partials);

/// What to say of the distribution.
struct FitReportSettings {
  std::int64_t bins = 64;
  std::vector<double> percentiles = {1, 5, 25, 50, 75, 95, 99};
};

/// Of the finite values, for which `mean` and `std` (ddof 0) are the true ones, rounded once.
struct FitStatistics {
  std::int64_t count = 0;  ///< of all values
  std::int64_t nan = 0;
  std::int64_t inf = 0;                        ///< of both signs
  double mean = 0, std = 0, min = 0, max = 0;  ///< NaN without a finite value
  std::vector<double> percentiles;  ///< in the order of the settings, interpolated as NumPy does
  std::vector<double> percentile_errors;  ///< none is further off than this
  std::vector<double> edges;              ///< of the histogram, ascending; a value is in bin i when
  std::vector<std::int64_t> counts;       ///< edges[i] <= v < edges[i + 1]; the last bin is closed
};

struct FitField {
  std::string name;
  Dtype dtype = Dtype::f32;
  Dims shape;                             ///< of the channels; () for the whole
  std::vector<FitStatistics> statistics;  ///< one for each channel, in row-major order
};

struct FitReport {
  std::int64_t samples = 0;         ///< that the statistics are of
  std::int64_t bad = 0;             ///< that are left out
  std::vector<double> percentiles;  ///< those asked for
  std::vector<FitField> fields;
};

/// Errors: invalid when samples of the dataset are missing, for fewer than 1 bin, and for
/// percentiles outside 0 to 100.
FitReport finish(const FitPartial& partial, const FitReportSettings& settings = {});

/// A map of field to statistics, which `mean: stats.yaml#image.mean` in a pipeline's file refers
/// to. to_json: the same in JSON, where NaN is null.
std::string to_yaml(const FitReport& report);
std::string to_json(const FitReport& report);

/// The numbers that a reference such as `stats.yaml#image.mean` names, for C++:
///     .normalize({.mean = read_statistic("stats.yaml#image.mean")})
/// Errors: io for a file that cannot be read; invalid, with the nearest name, for a field or a
/// statistic that is not there, and for one that is no number or list of numbers.
Reals read_statistic(const std::string& reference);

}  // namespace forebay
