#include <forebay/array/stream.h>

#include <forebay/array/cuda/backend.h>
#include <forebay/array/require.h>
#include <forebay/array/stream_state.h>

namespace forebay {

Event Event::create(Device device) {
  require_device(device);
  return Event(device.is_cuda() ? cuda::make_event(device.index) : make_cpu_event());
}

void Event::synchronize() const {
  if (state_ == nullptr) return;
  if (const auto point = state_->point()) point->wait();
}

void* Event::native() const { return state_ == nullptr ? nullptr : state_->native(); }

Stream Stream::create(Device device, int num_threads) {
  require_device(device);
  return Stream(device.is_cuda() ? cuda::make_stream(device.index) : make_cpu_stream(num_threads));
}

Stream Stream::borrow_cuda(void* cuda_stream, int device_index) {
  require_device(Device::cuda(device_index));
  return Stream(cuda::borrow_stream(cuda_stream, device_index));
}

Device Stream::device() const { return state_->device(); }
void* Stream::native() const { return state_->native(); }

void Stream::wait(const Event& event) const {
  if (event.state_ != nullptr) state_->wait(*event.state_);
}

void Stream::record(Event& event) const {
  if (event.state_ == nullptr) event = Event::create(device());
  FOREBAY_REQUIRE(
      event.state_->device() == device(), invalid,
      "an event of {} cannot be recorded on a stream of {}; create it on the stream's device.",
      to_string(event.state_->device()), to_string(device()));
  state_->record(*event.state_);
}

Event Stream::record() const {
  Event event;
  record(event);
  return event;
}

void Stream::enqueue(std::function<void()> task) const { state_->enqueue(std::move(task)); }
void Stream::keep(std::shared_ptr<const void> owner) const { state_->keep(std::move(owner)); }
void Stream::synchronize() const { state_->synchronize(); }

bool Stream::native_equal(const Stream& other) const {
  if (state_ == other.state_) return true;
  return device().is_cuda() && device() == other.device() && native() == other.native();
}

}  // namespace forebay
