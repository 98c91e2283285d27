#include <algorithm>
#include <mutex>

#include <forebay/array/cuda/backend.h>
#include <forebay/array/host_blocks.h>
#include <forebay/array/memory.h>
#include <forebay/array/require.h>
#include <forebay/array/stream_state.h>

namespace forebay {
namespace {

void* allocate_host(std::size_t bytes) {
  void* const data = take_host_block(bytes);
  FOREBAY_REQUIRE(data != nullptr || bytes == 0, resource,
                  "the host has no {} bytes of memory left; use smaller or fewer arrays.", bytes);
  return data;
}

/// An owner of a block.
std::shared_ptr<void> owned(void* data, std::size_t bytes) {
  return {data, [bytes](void* block) { give_host_block(block, bytes); }};
}

class HostMemory final : public MemoryResource {
 public:
  Device device() const override { return Device::cpu(); }
  void* allocate(std::size_t bytes, const Stream&) override { return allocate_host(bytes); }
  void deallocate(void* data, std::size_t bytes, const Stream& stream) noexcept override {
    if (data == nullptr) return;
    try {
      stream.keep(owned(data, bytes));
    } catch (...) {  // NOLINT(bugprone-empty-catch): no memory for the queue; the owner has freed
                     // it already
    }
  }
};

}  // namespace

MemoryPtr host_memory() {
  static const MemoryPtr memory = std::make_shared<HostMemory>();
  return memory;
}

std::shared_ptr<void> host_block(std::size_t bytes) {
  void* const data = allocate_host(bytes);
  return data == nullptr ? nullptr : owned(data, bytes);
}

MemoryPtr pinned_memory() {
  return cuda_device_count() > 0 ? cuda::pinned_memory() : host_memory();
}

MemoryPtr device_memory(Device device) {
  require_device(device);
  return device.is_cuda() ? cuda::device_memory(device.index) : host_memory();
}

struct CountingMemory::State {
  MemoryPtr upstream;
  std::size_t limit;
  mutable std::mutex mutex;
  std::size_t current = 0, peak = 0, allocations = 0;
};

CountingMemory::CountingMemory(MemoryPtr upstream, std::size_t limit)
    : state_(new State{.upstream = std::move(upstream), .limit = limit, .mutex = {}}) {}
CountingMemory::~CountingMemory() = default;

Device CountingMemory::device() const { return state_->upstream->device(); }

void* CountingMemory::allocate(std::size_t bytes, const Stream& stream) {
  // Under the lock: the counts are those of memory that is really held, and never above the limit.
  const std::lock_guard lock(state_->mutex);
  FOREBAY_REQUIRE(bytes <= state_->limit - state_->current, resource,
                  "{} bytes of {} memory were asked for, but {} of the limit of {} are in use; "
                  "raise the limit, or hold fewer arrays.",
                  bytes, to_string(device()), state_->current, state_->limit);
  void* const data = state_->upstream->allocate(bytes, stream);
  state_->current += bytes;
  state_->peak = std::max(state_->peak, state_->current);
  ++state_->allocations;
  return data;
}

void CountingMemory::deallocate(void* data, std::size_t bytes, const Stream& stream) noexcept {
  state_->upstream->deallocate(data, bytes, stream);
  const std::lock_guard lock(state_->mutex);
  state_->current -= bytes;
}

std::size_t CountingMemory::current_bytes() const {
  const std::lock_guard lock(state_->mutex);
  return state_->current;
}
std::size_t CountingMemory::peak_bytes() const {
  const std::lock_guard lock(state_->mutex);
  return state_->peak;
}
std::size_t CountingMemory::allocations() const {
  const std::lock_guard lock(state_->mutex);
  return state_->allocations;
}

}  // namespace forebay
