#pragma once

// Internal: what parallel_tbb.cpp offers to the layer, without oneTBB's headers.

#include <cstdint>
#include <memory>

namespace forebay {

/// The oneTBB arena of one CPU stream.
class Arena {
 public:
  /// 0 threads: as many as there are cores.
  explicit Arena(int num_threads);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// Enters the arena, calls `body(object)` and leaves.
  void run(void (*body)(void*), void* object);
  /// Whether the calling thread is in `run`, or in a parallel loop that was started from there.
  bool is_current() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Calls `part(object, first, last)` on disjoint parts of 0..units in the arena of the calling
/// thread. Returns when all are done; rethrows the first exception.
void run_parts(std::int64_t units, void (*part)(void*, std::int64_t, std::int64_t), void* object);

}  // namespace forebay
