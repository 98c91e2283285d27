#pragma once

#include <functional>
#include <memory>
#include <utility>

#include <forebay/array/view.h>

namespace forebay {

class StreamState;  // array/stream_state.h: one subclass per kind of device
class EventState;
class Event;
namespace cuda {
Event create_timing_event(Device device);  // cuda/graph.h
}

/// A point in a stream. Copies share it; safe from any thread. A default-constructed or never
/// recorded event has already passed.
class Event {
 public:
  Event() = default;
  /// A reusable event of `device`; without timing on CUDA.
  static Event create(Device device);

  bool valid() const { return state_ != nullptr; }
  /// Blocks the calling thread until the work before the last record is done.
  /// Errors: what that work failed with (CPU), or device.
  void synchronize() const;
  /// cudaEvent_t on CUDA, null on the CPU. Good until the event is recorded again.
  void* native() const;

 private:
  explicit Event(std::shared_ptr<EventState> state) : state_(std::move(state)) {}
  friend class Stream;
  friend Event cuda::create_timing_event(Device device);
  std::shared_ptr<EventState> state_;
};

/// An in-order queue of work on one device. Copies share the queue; the last one drains it and
/// closes it (in a task of that very queue it does not wait: the queue's thread finishes alone).
///
/// CPU: a thread of its own with an oneTBB arena, so that `parallel_for` inside a task uses that
/// arena and an ordering bug shows without a GPU. CUDA: a non-blocking cudaStream_t.
class Stream {
 public:
  /// A new stream. `num_threads` sizes the arena of a CPU stream; 0 takes every core. CUDA
  /// ignores it.
  /// Errors: unsupported for CUDA in a build without it or on a machine without a device,
  /// with the reason.
  static Stream create(Device device, int num_threads = 0);
  /// Wraps a cudaStream_t that somebody else owns and keeps alive.
  static Stream borrow_cuda(void* cuda_stream, int device_index);

  Device device() const;
  /// cudaStream_t on CUDA, null on the CPU.
  void* native() const;

  /// Makes later work in this stream wait for `event`; returns at once. Streams of any devices mix.
  void wait(const Event& event) const;
  /// Moves `event` to the end of the work enqueued so far; those who wait for its last place still
  /// do. An empty event is created. Errors: invalid when it belongs to another device.
  void record(Event& event) const;
  /// A new event at the end of the work enqueued so far.
  Event record() const;

  /// Runs `task` on a host thread after the work before it. On CUDA it must not call CUDA. An
  /// exception on the CPU fails the stream for good: later tasks are skipped, and `synchronize`
  /// and the events recorded behind it throw it; a CPU stream that waits for such an event
  /// fails as well.
  void enqueue(std::function<void()> task) const;

  /// Holds `owner` at least until the work enqueued so far is done; for memory of another stream
  /// or of the host.
  void keep(std::shared_ptr<const void> owner) const;

  /// Blocks until all work enqueued so far is done. Errors: the first failure of that work; invalid
  /// in a task of this same CPU stream.
  void synchronize() const;

  /// Both name the same queue.
  friend bool operator==(const Stream& a, const Stream& b) { return a.native_equal(b); }

 private:
  bool native_equal(const Stream& other) const;
  explicit Stream(std::shared_ptr<StreamState> state) : state_(std::move(state)) {}
  std::shared_ptr<StreamState> state_;
};

/// CUDA devices that this process can use; 0 in a build without CUDA and on a machine
/// without a driver.
int cuda_device_count();
/// Why `cuda_device_count()` is 0, in words; empty when it is not.
const char* cuda_absence_reason();
/// Whether a device that is named must be on this machine: not for a plan that is only looked at.
enum class Presence : std::uint8_t { required, not_needed };
/// "auto" -> cuda:0 when there is a device, else cpu; "cpu"; "cuda"; "cuda:N".
/// Errors: invalid for another text; unsupported for a device that is required and not there,
/// with the reason.
Device device_from_name(const char* name, Presence presence = Presence::required);

}  // namespace forebay
