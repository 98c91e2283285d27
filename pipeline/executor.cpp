#include <forebay/pipeline/executor.h>

#include <algorithm>
#include <chrono>
#include <set>

#include <forebay/array/cuda/range.h>
#include <forebay/array/require.h>
#include <forebay/array/stream_state.h>
#include <forebay/pipeline/failure.h>

namespace forebay {

Executor::Executor(std::shared_ptr<const Plan> plan, const Options& options, const Standing& start)
    : plan_(std::move(plan)),
      plans_{plan_},
      options_(options),
      bad_limit_(limit_of(plan_->spec->on_error, *plan_->sampler)),
      feed_(plan_->sampler, plan_->spec->name, start) {
  require_device(plan_->device);
  check_memory(options_.memory);
  // An epoch that goes on behind other batch sizes can end with another number of rows.
  for (const std::int64_t rows :
       std::set{plan_->sampler->tail_rows(), plan_->sampler->tail_rows(start.position.cursor)}) {
    if (rows > 0) plans_.push_back(compile_for(*plan_, rows));
  }
  if (const std::string& path = plan_->spec->on_error.quarantine; !path.empty())
    quarantine_.emplace(path);
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
  std::int64_t real_rows = plan_->sampler->real_rows(position.cursor);
  if (plan_->spec->on_error.mode == ErrorMode::skip)
    real_rows -= static_cast<std::int64_t>(ready.losses.samples.size());
  auto lease = std::make_shared<Lease>(std::move(ready.loan), pool, std::move(ready.fields),
                                       position, real_rows);
  try {
    account_for(ready);
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
  feed_.delivered(ready);
  const std::lock_guard stats_lock(stats_mutex_);
  delivered_.wait_ms +=
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  ++delivered_.batches;
  delivered_.samples += lease->fields().rows;
  return Batch(std::move(lease));
}

/// Lists and counts what the batch has missed. Errors: io when that is too much.
void Executor::account_for(const ReadyBatch& batch) {
  const std::vector<BadSample>& samples = batch.losses.samples;
  if (quarantine_ && !samples.empty()) quarantine_->add(samples);
  count(samples);
  FOREBAY_REQUIRE(batch.losses.hopeless.empty(), io, "{}", batch.losses.hopeless);
  const Standing before = feed_.standing();
  const auto bad = before.bad + static_cast<std::int64_t>(samples.size());
  if (bad <= bad_limit_) return;
  const BadSample& last = samples.back();
  fail(
      ErrorKind::io,
      "{} samples of this epoch are bad, more than the {} that it may have (`on_error`); the last, "
      "{} sample {}: {}",
      bad, bad_limit_, last.source, last.index, last.reason);
}

void Executor::count(const std::vector<BadSample>& samples) {
  const std::lock_guard lock(stats_mutex_);
  delivered_.bad_samples += static_cast<std::int64_t>(samples.size());
  for (const BadSample& sample : samples) {
    const auto same = [&](const BadSample& other) {
      return other.index == sample.index && other.source == sample.source;
    };
    auto& first = delivered_.first_bad;
    if (first.size() < Stats::kFirstBad && std::none_of(first.begin(), first.end(), same))
      first.push_back(sample);
  }
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
