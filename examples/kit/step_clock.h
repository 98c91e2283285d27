#pragma once

#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <chrono>
#include <utility>
#include <vector>

namespace kit {

/// Splits the time of a training loop into its steps and what lies between them: the wait for data.
/// Where the steps run on a GPU it is the GPU's own clock, by events on LibTorch's current stream:
/// it stands still there while the stream waits for a batch, although the host does not.
class StepClock {
 public:
  struct Times {
    double total_ms = 0;
    double wait_ms = 0;  ///< between steps, and before the first
    int steps = 0;
    double step_ms() const { return total_ms - wait_ms; }
  };

  explicit StepClock(c10::Device device) : device_(device) { restart(); }

  /// Put this at the top of the loop's body: the step ends where the body does.
  class Step {
   public:
    explicit Step(StepClock& clock) : clock_(clock) { clock_.mark(); }
    ~Step() { clock_.mark(); }
    Step(const Step&) = delete;

   private:
    StepClock& clock_;
  };
  [[nodiscard]] Step step() { return Step(*this); }

  /// Times since the start or the last read, after waiting for the last step; then starts anew.
  Times read() {
    Times times;
    if (device_.is_cuda()) events_.back().synchronize();
    for (std::size_t i = 1; i < size(); ++i) {
      const double ms =
          device_.is_cuda()
              ? events_[i - 1].elapsedTime(events_[i])
              : std::chrono::duration<double, std::milli>(marks_[i] - marks_[i - 1]).count();
      times.total_ms += ms;
      if (i % 2 == 1) times.wait_ms += ms;
      if (i % 2 == 0) ++times.steps;
    }
    restart();
    return times;
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::size_t size() const { return device_.is_cuda() ? events_.size() : marks_.size(); }
  void restart() {
    events_.clear();
    marks_.clear();
    mark();
  }
  void mark() {
    if (!device_.is_cuda()) {
      marks_.push_back(Clock::now());
      return;
    }
    c10::Event event(device_.type(), c10::EventFlag::BACKEND_DEFAULT);
    event.record(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
    events_.push_back(std::move(event));
  }

  c10::Device device_;
  std::vector<c10::Event> events_;
  std::vector<Clock::time_point> marks_;
};

}  // namespace kit
