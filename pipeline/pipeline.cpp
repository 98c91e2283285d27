#include <forebay/pipeline/pipeline.h>

#include <forebay/pipeline/executor.h>

namespace forebay {

Pipeline::Pipeline(std::unique_ptr<Executor> executor) : executor_(std::move(executor)) {}
Pipeline::Pipeline(Pipeline&&) noexcept = default;
Pipeline& Pipeline::operator=(Pipeline&&) noexcept = default;
Pipeline::~Pipeline() = default;

Pipeline Pipeline::from_spec(Spec spec, const Options& options) {
  return Pipeline(
      std::make_unique<Executor>(compile(std::make_shared<const Spec>(std::move(spec))), options));
}

PipelineBuilder Pipeline::build() { return {}; }

const Spec& Pipeline::spec() const { return *executor_->plan().spec; }
const Plan& Pipeline::plan() const { return executor_->plan(); }
Device Pipeline::device() const { return executor_->plan().device; }
std::int64_t Pipeline::steps_per_epoch() const {
  return executor_->plan().sampler->steps_per_epoch();
}
void Pipeline::set_default_memory(const MemoryPtr& memory) {
  executor_->set_default_memory(memory);
}
void Pipeline::start_epoch(std::int64_t epoch) { executor_->start_epoch(epoch); }
std::optional<Batch> Pipeline::next(const Stream& consumer) { return executor_->next(&consumer); }
std::optional<Batch> Pipeline::next() { return executor_->next(nullptr); }
void Pipeline::stop() { executor_->stop(); }
Stats Pipeline::stats() const { return executor_->stats(); }

Pipeline::Epoch Pipeline::epoch(std::int64_t epoch, const Stream& consumer) {
  start_epoch(epoch);
  return {*this, consumer};
}

Pipeline::Epoch Pipeline::epoch(std::int64_t epoch) {
  start_epoch(epoch);
  return {*this, std::nullopt};
}

Pipeline::Epoch::Iterator::Iterator(Pipeline& pipeline, const std::optional<Stream>& consumer)
    : pipeline_(&pipeline), consumer_(consumer) {
  ++*this;
}

Pipeline::Epoch::Iterator& Pipeline::Epoch::Iterator::operator++() {
  batch_.reset();  // the slot goes back before the next batch is waited for
  batch_ = consumer_ ? pipeline_->next(*consumer_) : pipeline_->next();
  return *this;
}

}  // namespace forebay
