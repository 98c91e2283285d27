#include <forebay/pipeline/slot.h>

#include <algorithm>
#include <cstring>

#include <forebay/array/require.h>

namespace forebay {
namespace {

/// Bytes as an array.
Array block(std::size_t bytes, const MemoryPtr& memory, const Stream& order) {
  return Array::empty({static_cast<std::int64_t>(bytes)}, Dtype::u8, memory, order);
}

/// Runs what may fail at process exit or after a device failed, where nobody can be told.
template <class F>
void quietly(F&& action) noexcept {
  try {
    action();
  } catch (...) {
  }
}

}  // namespace

Slot::~Slot() {
  // Device memory is freed in the order of `order`, host memory at once: behind everything that may
  // still use it.
  quietly([&] { copied.synchronize(); });
  quietly([&] { ready.synchronize(); });
  for (std::size_t i = 0; i < releases; ++i) {
    quietly([&] {
      device.count() > 0 ? order.wait(released[i].second) : released[i].second.synchronize();
    });
  }
}

SlotPool::SlotPool(Settings settings, const Stream& order)
    : settings_(std::move(settings)), order_(order) {
  for (int i = 0; i < settings_.ahead + 1; ++i)
    free_.push_back(make_slot());
  slots_ = settings_.ahead + 1;
}

std::unique_ptr<Slot> SlotPool::make_slot() const {
  auto slot = std::make_unique<Slot>(order_);
  if (settings_.device_memory == nullptr) {
    slot->host = block(settings_.host_bytes, settings_.host_memory, order_);
  } else {
    slot->device = block(settings_.device_bytes, settings_.device_memory, order_);
    slot->copied = Event::create(order_.device());
    slot->ready = Event::create(order_.device());
  }
  return slot;
}

SlotPool::Loan SlotPool::acquire() {
  std::unique_lock lock(mutex_);
  const auto may_grow = [&] { return slots_ < settings_.ahead + std::max(held_, 1); };
  waiting_since_ = std::chrono::steady_clock::now();
  changed_.wait(lock, [&] { return closed_ || !free_.empty() || may_grow(); });
  blocked_ += std::chrono::steady_clock::now() - *waiting_since_;
  waiting_since_.reset();
  if (closed_) return {};
  Loan loan;
  if (!free_.empty()) {
    loan = {shared_from_this(), std::move(free_.front())};
    free_.erase(free_.begin());
  } else {
    ++slots_;
  }
  lock.unlock();  // allocating may take long
  if (!loan) {
    try {
      loan = {shared_from_this(), make_slot()};
    } catch (...) {
      lock.lock();
      --slots_;
      throw;
    }
  }
  if (loan->host.count() == 0)
    loan->host = block(settings_.host_bytes, settings_.host_memory, order_);
  return loan;
}

void SlotPool::hold() {
  const std::lock_guard lock(mutex_);
  ++held_;
  changed_.notify_all();
}

void SlotPool::unhold() noexcept {
  const std::lock_guard lock(mutex_);
  --held_;
}

void SlotPool::release(Loan loan, std::span<const Stream> consumers) noexcept {
  quietly([&] {
    Slot& slot = *loan;
    for (const Stream& consumer : consumers) {
      if (!consumer.device().is_cuda()) continue;
      quietly([&] {
        if (slot.releases == slot.released.size()) slot.released.emplace_back();
        auto& [device, event] = slot.released[slot.releases];
        if (!event.valid() || !(device == consumer.device())) {
          event = Event::create(consumer.device());
          device = consumer.device();
        }
        consumer.record(event);
        ++slot.releases;
      });
    }
    // On the host the slot goes back when the last of these tasks is gone, whether it ran or was
    // skipped.
    std::shared_ptr<Loan> shared;
    for (const Stream& consumer : consumers) {
      if (consumer.device().is_cuda()) continue;
      if (shared == nullptr) shared = std::make_shared<Loan>(std::move(loan));
      quietly([&] { consumer.enqueue([shared] {}); });
    }
  });
}

void SlotPool::put_back(std::unique_ptr<Slot> slot) noexcept {
  if (settings_.poison) quietly([&] { poison(*slot); });
  {
    const std::lock_guard lock(mutex_);
    if (!closed_) {
      quietly([&] { free_.push_back(std::move(slot)); });
      changed_.notify_all();
    }
  }
  // Closed: freed here, outside the lock.
}

void SlotPool::poison(Slot& slot) const {
  if (slot.device.count() == 0) {
    for (std::size_t i = 0; i < slot.releases; ++i)
      slot.released[i].second.synchronize();
    std::memset(slot.host.data(), 0xFF, slot.host.bytes());
    return;
  }
  order_.wait(slot.ready);
  for (std::size_t i = 0; i < slot.releases; ++i)
    order_.wait(slot.released[i].second);
  fill_bytes(slot.device.view(), 0xFF, order_);
}

void SlotPool::close() noexcept {
  std::vector<std::unique_ptr<Slot>> freed;
  const std::lock_guard lock(mutex_);
  closed_ = true;
  freed.swap(free_);
  changed_.notify_all();
}

int SlotPool::held() const {
  const std::lock_guard lock(mutex_);
  return held_;
}

int SlotPool::slots() const {
  const std::lock_guard lock(mutex_);
  return slots_;
}

double SlotPool::blocked_ms() const {
  const std::lock_guard lock(mutex_);
  auto blocked = blocked_;
  if (waiting_since_) blocked += std::chrono::steady_clock::now() - *waiting_since_;
  return std::chrono::duration<double, std::milli>(blocked).count();
}

}  // namespace forebay
