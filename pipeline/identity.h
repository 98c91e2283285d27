#pragma once

// Internal: what the values of a run hang on, as text that can be compared and shown.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <forebay/pipeline/plan.h>

namespace forebay {

/// The part of a plan that says what a bad sample gives; where one ends the run there is none.
inline constexpr std::string_view kBadSamples = "bad samples";

struct Identity {
  /// Names and texts, such as "stage 1" and "clip(min=-3, max=3): x -> x". Long texts are cut, with
  /// a hash of the whole.
  using Parts = std::vector<std::pair<std::string, std::string>>;

  /// What changes values or samples: seed, order, stages that are needed, output; the batch size
  /// only where a stage mixes samples. Not depth, threads, device or shards.
  Parts plan;
  /// How many samples of which columns, and the source's fingerprint. Not where they lie.
  Parts dataset;
  /// Where they lie, for people.
  std::string source;

  std::string plan_hash() const;
  std::string dataset_hash() const;
};

/// Reads some samples. Errors: those of the source.
Identity identity_of(const Plan& plan);

}  // namespace forebay
