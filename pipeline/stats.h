#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace forebay {

/// A sample that could not be read or broke a check (`OnError`).
struct BadSample {
  std::string source;  ///< with `index`: Source::origin
  std::int64_t index = 0;
  std::string reason;
};

/// What an executor has done since it was made. Times in milliseconds of wall clock unless
/// said otherwise.
struct Stats {
  std::int64_t batches = 0;      ///< delivered
  std::int64_t samples = 0;      ///< delivered
  /// In whose places substitutes were delivered; one that comes in two epochs counts twice.
  std::int64_t bad_samples = 0;
  static constexpr std::size_t kFirstBad = 8;
  std::vector<BadSample> first_bad;  ///< the first of them, each once, at most kFirstBad
  double wait_ms = 0;            ///< next() waited for a batch (the stall that the host sees)
  double read_ms = 0;            ///< the source filled slots
  double blocked_ms = 0;         ///< the producer waited for a free slot: back-pressure
  std::size_t copied_bytes = 0;  ///< host to device
  /// Device to host on the data path; 0 unless a stage is placed on the CPU behind a GPU.
  std::size_t returned_bytes = 0;
  int slots = 0;  ///< allocated
  struct Step {
    std::string label;
    double total_ms = 0;  ///< CUDA: between events; only with `Options::time_steps`
    std::int64_t runs = 0;
  };
  std::vector<Step> steps;
  std::int64_t graph_replays = 0;  ///< batches whose GPU part was one CUDA graph launch
  std::string graph_fallback;      ///< why graphs are not used; empty when they are
};

}  // namespace forebay
