#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <forebay/array/array.h>

namespace forebay {

class Lease;  // pipeline/lease.h

/// Named arrays of one batch, and the lease on the slot that holds them.
///
/// The arrays share the lease: the slot is reused only when the last array (and the Batch) is gone,
/// and then only behind the work that the consumer's streams had enqueued by that moment. Dropping
/// the last reference is safe on any thread, after the pipeline is gone, and at process exit.
class Batch {
 public:
  Batch() = default;
  /// The field called `name`, [rows, ...]. Errors: invalid, with the names there are.
  Array operator[](std::string_view name) const;
  const std::vector<std::string>& names() const;
  std::int64_t rows() const;
  /// How many of the rows, from the first, the epoch delivers in their own right; perhaps none. The
  /// rest repeat samples so that every shard has as many rows, or a batch its size
  /// (`last_batch_policy`), or stand in for bad ones (`OnError`): leave them out of a mean.
  std::int64_t real_rows() const;
  std::int64_t epoch() const;
  std::int64_t step() const;  ///< within the epoch; the same on every shard
  /// Dataset indices of the rows, in order.
  std::span<const std::int64_t> sample_ids() const;
  /// Another stream will read these arrays: it waits for the batch now, and reuse waits for
  /// it later.
  void record_stream(const Stream& stream) const;
  bool valid() const { return lease_ != nullptr; }

 private:
  friend class Executor;
  explicit Batch(std::shared_ptr<Lease> lease) : lease_(std::move(lease)) {}
  std::shared_ptr<Lease> lease_;
};

}  // namespace forebay
