#include <forebay/pipeline/feed.h>

#include <forebay/array/require.h>

namespace forebay {

std::optional<Ticket> Feed::take() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stopped_ || (failure_ == nullptr && !sampler_->ends_at(0)); });
  if (stopped_) return std::nullopt;
  const Ticket ticket{generation_, next_sequence_++, producer_};
  producer_ = begun(sampler_->after(producer_));
  return ticket;
}

bool Feed::wanted(const Ticket& ticket) const {
  const std::lock_guard lock(mutex_);
  return !stopped_ && ticket.generation == generation_;
}

void Feed::push(ReadyBatch batch) {
  const std::lock_guard lock(mutex_);
  if (stopped_ || batch.ticket.generation != generation_) return;  // `batch` goes after the lock
  queue_.push_back(std::move(batch));
  changed_.notify_all();
}

void Feed::fail(const Ticket& ticket, std::exception_ptr failure) {
  const std::lock_guard lock(mutex_);
  if (stopped_ || thrown_ || ticket.generation != generation_) return;
  if (failure_ != nullptr && failed_sequence_ < ticket.sequence) return;
  failure_ = std::move(failure);
  failed_sequence_ = ticket.sequence;
  changed_.notify_all();
}

BatchPosition Feed::begun(const BatchPosition& position) const {
  return sampler_->ends_at(position.cursor) ? BatchPosition{position.epoch + 1} : position;
}

void Feed::require_open() const {
  if (thrown_) std::rethrow_exception(failure_);
  FOREBAY_REQUIRE(!stopped_, cancelled, "pipeline {} was stopped; it delivers nothing more.",
                  name_);
}

std::optional<BatchPosition> Feed::upcoming() {
  const std::lock_guard lock(mutex_);
  require_open();
  const BatchPosition position = consumer_.position;
  if (!sampler_->ends_at(position.cursor)) return position;
  consumer_ = {{position.epoch + 1}};
  untouched_ = true;
  return std::nullopt;
}

ReadyBatch Feed::pop() {
  std::unique_lock lock(mutex_);
  const auto failed = [&] {
    return failure_ != nullptr && (thrown_ || failed_sequence_ <= expected_sequence_);
  };
  changed_.wait(lock, [&] { return stopped_ || failed() || !queue_.empty(); });
  if (failed()) thrown_ = true;
  require_open();
  ReadyBatch batch = std::move(queue_.front());
  queue_.pop_front();
  ++expected_sequence_;
  return batch;
}

void Feed::delivered(const ReadyBatch& batch) {
  const std::lock_guard lock(mutex_);
  consumer_.position = sampler_->after(consumer_.position);
  consumer_.bad += static_cast<std::int64_t>(batch.losses.samples.size());
  untouched_ = false;
}

Standing Feed::standing() const {
  const std::lock_guard lock(mutex_);
  return consumer_;
}

void Feed::break_off(std::exception_ptr failure) {
  std::deque<ReadyBatch> dropped;
  const std::lock_guard lock(mutex_);
  if (thrown_) return;
  failure_ = std::move(failure);
  thrown_ = true;
  dropped.swap(queue_);
  changed_.notify_all();
}

/// Of a batch that nobody will see: the producer goes on.
void Feed::forget_failure() {
  failure_ = nullptr;
  changed_.notify_all();
}

void Feed::start_epoch(std::int64_t epoch) {
  FOREBAY_REQUIRE(epoch >= 0, invalid, "the epoch is {}; it must be at least 0.", epoch);
  std::deque<ReadyBatch> dropped;  // outlives the lock
  const std::lock_guard lock(mutex_);
  require_open();
  if (!untouched_ && sampler_->ends_at(consumer_.position.cursor))
    consumer_ = {begun(consumer_.position)};
  if (consumer_.position.epoch == epoch && (untouched_ || consumer_.position.cursor == 0)) return;
  consumer_ = {{epoch}};
  untouched_ = true;
  while (!queue_.empty()) {
    const Ticket& front = queue_.front().ticket;
    if (front.position == consumer_.position) {
      expected_sequence_ = front.sequence;
      if (failed_sequence_ < expected_sequence_) forget_failure();
      return;
    }
    dropped.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  ++generation_;
  producer_ = consumer_.position;
  expected_sequence_ = next_sequence_;
  forget_failure();
}

void Feed::stop() noexcept {
  std::deque<ReadyBatch> dropped;
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  dropped.swap(queue_);
  changed_.notify_all();
}

}  // namespace forebay
