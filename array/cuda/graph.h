#pragma once

#include <functional>
#include <memory>

#include <forebay/array/stream.h>

namespace forebay::cuda {

/// Work captured once from a CUDA stream and replayed as one launch.
class Graph {
 public:
  /// Captures what `enqueue` puts on `stream` (thread-local mode: other threads' CUDA calls do no
  /// harm). Errors: device, when something in it cannot be captured; the stream is usable
  /// afterwards.
  static std::shared_ptr<Graph> capture(const Stream& stream, const std::function<void()>& enqueue);
  virtual ~Graph() = default;
  /// Enqueues one replay.
  virtual void launch(const Stream& stream) const = 0;
};

/// Lets the calling thread make any CUDA call while another thread captures in global mode, as a
/// trainer may.
void relax_capture_mode_of_this_thread();

/// Milliseconds between two passed events created with `create_timing_event`.
Event create_timing_event(Device device);
float elapsed_ms(const Event& begin, const Event& end);

}  // namespace forebay::cuda
