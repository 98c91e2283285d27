#pragma once

// Internal: the oneTBB arena of one CPU stream, without oneTBB's headers.

#include <memory>

namespace forebay {

class Arena {
 public:
  /// 0 threads: as many as there are cores.
  explicit Arena(int num_threads);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// Enters the arena, calls `body(object)` and leaves; `body` must not throw.
  void run(void (*body)(void*), void* object);
  /// Whether the calling thread is in `run`, or in a parallel loop that was started from there.
  bool is_current() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace forebay
