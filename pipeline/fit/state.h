#pragma once

// Internal: what a FitPartial holds: sums of tally's tables over the samples that are done.

#include <array>
#include <map>
#include <string>
#include <vector>

#include <forebay/array/array.h>
#include <forebay/ops/tally/bins.h>
#include <forebay/pipeline/fit.h>
#include <forebay/pipeline/fit/exact.h>

namespace forebay {

namespace fit_detail {

/// The words of one bin of a table, added up: 64 bits do not hold them over a whole dataset.
using Words = std::array<Wide, 7>;

/// Of one slice of a field: a table without its empty bins, and tally's extremes.
struct Channel {
  std::map<std::int64_t, Words> table;
  std::array<std::uint64_t, 2> extremes = {};

  void add(const Channel& other);
};

struct FieldTables {
  std::string name;
  Dtype dtype = Dtype::f32;
  std::int64_t bits = 0;
  Dims shape;  ///< of the channels
  /// Of each channel, what was subtracted from the values that are tallied, which then say how the
  /// field of that name is distributed; empty: nothing, and they say all.
  std::vector<double> origins;
  std::vector<Channel> channels;

  TallyBins bins() const { return {dtype, bits}; }
};

}  // namespace fit_detail

struct FitPartial::State {
  std::string about;            ///< data, stages and settings, for people; equal in all parts
  std::int64_t samples = 0;     ///< of the dataset
  std::vector<Positions> done;  ///< ascending, with gaps between them
  std::int64_t bad = 0;         ///< of those, how many are left out of the sums
  std::vector<fit_detail::FieldTables> fields;

  /// Errors: invalid for another `about` and for samples that are done in both.
  void add(const State& other);
  /// Errors: invalid for samples that are done already.
  void add_done(const std::vector<Positions>& ranges);
  /// Those of begin..end that are not done.
  std::vector<Positions> missing(Positions wanted) const;
};

namespace fit_detail {

/// "samples 0 to 99 and 200 to 299".
std::string to_string(const std::vector<Positions>& ranges);

}  // namespace fit_detail
}  // namespace forebay
