#pragma once

// Internal: what stands behind Stream and Event. One subclass of each per kind of device.

#include <exception>
#include <functional>
#include <memory>
#include <string>

#include <forebay/array/view.h>

namespace forebay {

/// One recording of an event. Recording the event again makes another point; those who wait keep
/// theirs.
class EventPoint {
 public:
  virtual ~EventPoint() = default;
  /// Blocks the calling thread until the work before the point is done. Safe from any thread, and
  /// after the stream and the event are gone. Errors: what that work failed with (CPU), or device.
  virtual void wait() const = 0;
  /// Calls `signal` once, when the point has passed, with what the work before it failed with: at
  /// once, in the thread that passes it, or in one of CUDA's, so `signal` does little, calls no
  /// CUDA and does not throw.
  using Signal = std::function<void(std::exception_ptr failure)>;
  virtual void when_passed(Signal signal) const = 0;
};

/// Safe to use from any thread.
class EventState {
 public:
  virtual ~EventState() = default;
  virtual Device device() const = 0;
  /// cudaEvent_t on CUDA, null on the CPU. Good until the event is recorded again.
  virtual void* native() const { return nullptr; }
  /// The last recording at the time of this call; null when there is none. A later recording must
  /// not change what the returned point waits for: on CUDA, recording while a point is held takes a
  /// fresh cudaEvent_t.
  virtual std::shared_ptr<const EventPoint> point() const = 0;
};

/// Safe to use from any thread. The destructor runs in whatever thread drops the last handle, never
/// throws, and returns when the work enqueued so far is done.
class StreamState {
 public:
  virtual ~StreamState() = default;
  virtual Device device() const = 0;
  /// cudaStream_t on CUDA, null on the CPU.
  virtual void* native() const { return nullptr; }
  /// Later work waits for the event's recording at the time of this call. The event may be of any
  /// device: a CPU stream waits for `event.point()` to signal; a CUDA stream waits for a CUDA event
  /// on the device, and for `event.point()` of a CPU event through memory that it sets. When that
  /// point has failed, so has this stream: what it threw is thrown by `synchronize`.
  virtual void wait(const EventState& event) = 0;
  /// `event` is of this stream's device.
  virtual void record(EventState& event) = 0;
  /// Runs `task` on a host thread after the work before it. What it throws is thrown by
  /// `synchronize`, the first one first. The task is destroyed before later work counts as done
  /// (CPU); where CUDA calls are allowed (CUDA).
  virtual void enqueue(std::function<void()> task) = 0;
  /// Holds `owner` at least until the work enqueued so far is done, and drops it where its deleter
  /// may call CUDA: not in a host function. May hold longer, until a later call on this stream or
  /// its destruction; `synchronize` drops it.
  virtual void keep(std::shared_ptr<const void> owner) = 0;
  virtual void synchronize() = 0;
};

std::shared_ptr<StreamState> make_cpu_stream(int num_threads);
std::shared_ptr<EventState> make_cpu_event();

/// Errors: unsupported when `device` is a CUDA device that is not there, with the reason.
void require_device(Device device);
/// The text of that error, for a machine with `count` CUDA devices, or none and the `reason`.
std::string missing_device_text(Device device, int count, const char* reason);

}  // namespace forebay
