#pragma once

// Internal: what a Batch and its arrays own.

#include <mutex>
#include <string>
#include <vector>

#include <forebay/pipeline/memory_map.h>
#include <forebay/pipeline/order/sampler.h>
#include <forebay/pipeline/slot.h>

namespace forebay {

/// What all batches of one plan have in common.
struct BatchFields {
  explicit BatchFields(const Plan& plan);
  std::vector<std::string> names;
  std::vector<ArrayView> views;  ///< without data pointers
  std::vector<MemoryMap::Place> places;
  std::int64_t rows = 0;
  std::size_t ids_offset = 0;  ///< in the host block
};

/// Keeps a slot from being reused until the last array of the batch is gone, and then until the
/// consumers' streams have passed that moment.
class Lease {
 public:
  Lease(SlotPool::Loan loan, std::shared_ptr<SlotPool> pool,
        std::shared_ptr<const BatchFields> fields, BatchPosition position, std::int64_t real_rows);
  ~Lease();
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

  const BatchFields& fields() const { return *fields_; }
  BatchPosition position() const { return position_; }
  std::int64_t real_rows() const { return real_rows_; }
  ArrayView view(std::size_t field) const;
  const std::int64_t* sample_ids() const;

  /// `stream` waits for the batch, and reuse waits for `stream`.
  void add_consumer(const Stream& stream);
  /// Blocks until the batch is complete. Errors: device.
  void wait_on_host() const { loan_->ready.synchronize(); }

 private:
  SlotPool::Loan loan_;
  const std::shared_ptr<SlotPool> pool_;
  const std::shared_ptr<const BatchFields> fields_;
  const BatchPosition position_;
  const std::int64_t real_rows_;
  std::mutex mutex_;
  std::vector<Stream> consumers_;
};

}  // namespace forebay
