#pragma once

// Internal: the memory of batches in flight, and who may use it when.

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <forebay/array/array.h>

namespace forebay {

struct Binding;  // pipeline/runner.h: the views, graphs and timing events of one plan over one slot

/// The buffers of one batch in flight. One owner at a time: the pool, the producer, the ready queue
/// or a lease.
struct Slot {
  explicit Slot(const Stream& copies) : order(copies) {}
  ~Slot();
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;

  Array host;    ///< u8: what is read, and the rest of a batch on the host; pinned beside a GPU
  Array device;  ///< u8: what travelled and the rest of a batch on a GPU; empty for a CPU pipeline
  Event copied;  ///< the GPU has read `host`
  Event ready;   ///< the batch is complete on the GPU
  /// The first `releases` of them: what consumers had enqueued when they let go.
  std::vector<std::pair<Device, Event>> released;
  std::size_t releases = 0;
  std::vector<std::shared_ptr<Binding>> bindings;  ///< by the number of the plan
  Stream
      order;  ///< gives and takes the memory: the copy stream, or the CPU stream of a CPU pipeline
};

/// Slots that are free, and how many there are. Shared by the pipeline and its leases; the last one
/// ends it. Safe to use from any thread.
class SlotPool : public std::enable_shared_from_this<SlotPool> {
 public:
  struct Settings {
    std::size_t host_bytes = 0, device_bytes = 0;  ///< of a slot
    MemoryPtr host_memory, device_memory;          ///< device: null for a CPU pipeline
    int ahead = 3;        ///< slots that the consumer leaves to the producer
    bool poison = false;  ///< fill with 0xFF what comes back
  };

  /// A slot on its way; goes back to the pool, unless it is moved on.
  class Loan {
   public:
    Loan() = default;
    Loan(std::shared_ptr<SlotPool> pool, std::unique_ptr<Slot> slot)
        : pool_(std::move(pool)), slot_(std::move(slot)) {}
    Loan(Loan&&) = default;
    Loan& operator=(Loan&& other) noexcept {
      give_back();
      pool_ = std::move(other.pool_);
      slot_ = std::move(other.slot_);
      return *this;
    }
    ~Loan() { give_back(); }
    Slot& operator*() const { return *slot_; }
    Slot* operator->() const { return slot_.get(); }
    explicit operator bool() const { return slot_ != nullptr; }

   private:
    void give_back() noexcept {
      if (slot_) pool_->put_back(std::move(slot_));
    }
    std::shared_ptr<SlotPool> pool_;
    std::unique_ptr<Slot> slot_;
  };

  /// Allocates `ahead` slots and one for a consumer, but for page-locked memory, which takes long:
  /// a slot gets that when it is first acquired, so that the first batch waits for its own only.
  /// `order`: see Slot.
  SlotPool(Settings settings, const Stream& order);

  /// Waits for a free slot; makes a new one while the consumer holds more than one batch. Empty
  /// once closed. Events that the next writer must wait for are in the slot. Errors: resource.
  Loan acquire();
  /// The consumer got a batch, or let go of one.
  void hold();
  void unhold() noexcept;
  /// Takes back a slot behind the work that `consumers` have been given so far. Never throws.
  static void release(Loan loan, std::span<const Stream> consumers) noexcept;
  /// Nobody acquires any more: `acquire` returns, and memory is freed as it comes back.
  void close() noexcept;

  int held() const;
  int slots() const;
  double blocked_ms() const;

 private:
  std::unique_ptr<Slot> make_slot() const;
  void put_back(std::unique_ptr<Slot> slot) noexcept;
  void poison(Slot& slot) const;

  const Settings settings_;
  const Stream order_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Slot>> free_;  // the first came back first
  int slots_ = 0;
  int held_ = 0;
  bool closed_ = false;
  std::chrono::steady_clock::duration blocked_{};
  std::optional<std::chrono::steady_clock::time_point> waiting_since_;
};

}  // namespace forebay
