#pragma once

#include <cstddef>
#include <memory>

#include <forebay/array/stream.h>

namespace forebay {

/// Gives and takes memory of one device in the order of a stream: memory may be used by work
/// enqueued on `stream` after `allocate`, and is reused only by work enqueued after `deallocate`
/// there. Implementations are safe to call from any thread. Subclass it to put Forebay's arrays in
/// your own allocator.
class MemoryResource {
 public:
  virtual ~MemoryResource() = default;
  virtual Device device() const = 0;
  /// At least `bytes` bytes aligned to 256; null for 0 bytes. Errors: resource, saying how much
  /// was asked for.
  virtual void* allocate(std::size_t bytes, const Stream& stream) = 0;
  /// Takes back what `allocate` gave. Never throws: it runs in destructors.
  virtual void deallocate(void* data, std::size_t bytes, const Stream& stream) noexcept = 0;
};

using MemoryPtr = std::shared_ptr<MemoryResource>;

/// Host memory from the C library; freed when the work enqueued on the stream before
/// `deallocate` is done.
MemoryPtr host_memory();
/// A block of the same memory that lives as long as its owner; for arrays that no stream has made.
/// Null for 0 bytes.
/// Errors: resource.
std::shared_ptr<void> host_block(std::size_t bytes);
/// Page-locked host memory, for copies that overlap with compute; plain host memory in a build
/// without CUDA or on a machine without a device. Slow to allocate: keep what you get.
MemoryPtr pinned_memory();
/// The default pool of `device`: host_memory() on the CPU, an explicit cudaMemPool_t that keeps
/// what it freed on CUDA. One pool per device and process.
MemoryPtr device_memory(Device device);

/// Counts what goes through it to another resource; `limit` bytes at once, then a resource error.
class CountingMemory final : public MemoryResource {
 public:
  explicit CountingMemory(MemoryPtr upstream, std::size_t limit = static_cast<std::size_t>(-1));
  ~CountingMemory() override;
  Device device() const override;
  void* allocate(std::size_t bytes, const Stream& stream) override;
  void deallocate(void* data, std::size_t bytes, const Stream& stream) noexcept override;
  std::size_t current_bytes() const;
  std::size_t peak_bytes() const;
  std::size_t allocations() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace forebay
