#pragma once

#include <string>

#include <forebay/pipeline/stats.h>

namespace forebay::cli {

/// What a run did.
struct RunReport {
  std::string pipeline;
  std::string device;
  std::int64_t epochs = 0;    ///< begun
  double seconds = 0;         ///< wall clock, from the first call on
  double first_batch_ms = 0;  ///< until the first batch was there: threads, memory, kernels
  std::string on_error;       ///< fail, skip or replace
  std::int64_t files = 0;     ///< saved
  std::string folder;         ///< where to
  Stats stats;

  double samples_per_second() const {
    return seconds > 0 ? static_cast<double>(stats.samples) / seconds : 0;
  }
  /// The part of the time that the consumer waited for batches; a run without a training step does
  /// little else.
  double wait_share() const { return seconds > 0 ? stats.wait_ms / (1000 * seconds) : 0; }
};

std::string to_text(const RunReport& report);
std::string to_json(const RunReport& report);

/// The JSON Schema of the YAML file, from the ops' fields and the table of keys.
std::string schema_json();

}  // namespace forebay::cli
