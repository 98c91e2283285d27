#include <forebay/pipeline/executor.h>

#include <chrono>
#include <set>

#include <forebay/array/cuda/range.h>
#include <forebay/array/require.h>
#include <forebay/array/stream_state.h>
#include <forebay/pipeline/failure.h>

namespace forebay {

Executor::Executor(std::shared_ptr<const Plan> plan, const Options& options,
                   const BatchPosition& start)
    : plan_(std::move(plan)),
      plans_{plan_},
      options_(options),
      feed_(plan_->sampler, plan_->spec->name, start) {
  require_device(plan_->device);
  check_memory(options_.memory);
  // An epoch that goes on behind other batch sizes can end with another number of rows.
  for (const std::int64_t rows :
       std::set{plan_->sampler->tail_rows(), plan_->sampler->tail_rows(start.cursor)}) {
    if (rows > 0) plans_.push_back(compile_for(*plan_, rows));
  }
}

Executor::~Executor() { feed_.stop(); }

void Executor::check_memory(const MemoryPtr& memory) const {
  FOREBAY_REQUIRE(
      memory == nullptr || memory->device() == plan_->device, invalid,
      "the memory for slots is on {}, but pipeline {} runs on {}; give it memory of that device.",
      to_string(memory->device()), plan_->spec->name, to_string(plan_->device));
}

Options Executor::options() const {
  const std::lock_guard lock(producer_mutex_);
  return options_;
}

void Executor::set_default_memory(const MemoryPtr& memory) {
  check_memory(memory);
  const std::lock_guard lock(producer_mutex_);
  if (options_.memory == nullptr) options_.memory = memory;
}

Producer& Executor::producer() {
  const std::lock_guard lock(producer_mutex_);
  if (producer_ == nullptr) producer_ = std::make_unique<Producer>(plans_, options_, feed_);
  return *producer_;
}

void Executor::start_epoch(std::int64_t epoch) {
  const std::lock_guard lock(consumer_mutex_);
  feed_.start_epoch(epoch);
}

std::optional<Batch> Executor::next(const Stream* consumer) {
  const std::lock_guard lock(consumer_mutex_);
  const std::optional<BatchPosition> upcoming = feed_.upcoming();
  if (!upcoming) return std::nullopt;
  const cuda::Range range("next", upcoming->epoch, upcoming->step);
  const std::shared_ptr<SlotPool>& pool = producer().pool();
  FOREBAY_REQUIRE(pool->held() < plan_->spec->max_held_batches, resource,
                  "pipeline {}: the consumer holds {} batches, as many as it may; drop them or "
                  "raise max_held_batches.",
                  plan_->spec->name, pool->held());
  const auto begin = std::chrono::steady_clock::now();
  ReadyBatch ready = feed_.pop();
  const BatchPosition position = ready.ticket.position;
  auto lease = std::make_shared<Lease>(std::move(ready.loan), pool, std::move(ready.fields),
                                       position, plan_->sampler->real_rows(position.cursor));
  try {
    if (consumer != nullptr) {
      lease->add_consumer(*consumer);
    } else {
      lease->wait_on_host();
    }
  } catch (...) {
    try {
      rethrow_at(fmt::format("epoch {}, batch {}", position.epoch, position.step),
                 ErrorKind::device);
    } catch (...) {
      feed_.break_off(std::current_exception());
      throw;
    }
  }
  const std::lock_guard stats_lock(stats_mutex_);
  delivered_.wait_ms +=
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  ++delivered_.batches;
  delivered_.samples += lease->fields().rows;
  return Batch(std::move(lease));
}

void Executor::stop() {
  feed_.stop();
  const std::lock_guard lock(producer_mutex_);
  if (producer_ != nullptr) producer_->pool()->close();
}

Stats Executor::stats() {
  std::unique_lock lock(stats_mutex_);
  Stats stats = delivered_;
  lock.unlock();
  const std::lock_guard producer_lock(producer_mutex_);
  if (producer_ != nullptr) producer_->add_to(stats);
  return stats;
}

}  // namespace forebay
