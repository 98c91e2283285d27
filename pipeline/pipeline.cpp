#include <forebay/pipeline/pipeline.h>

#include <mutex>

#include <forebay/array/require.h>
#include <forebay/pipeline/executor.h>
#include <forebay/pipeline/state.h>

namespace forebay {

/// What takes reading is found out when it is first asked for.
class LazyIdentity {
 public:
  const Identity& of(const Plan& plan) {
    const std::lock_guard lock(mutex_);
    if (!identity_) identity_ = identity_of(plan);
    return *identity_;
  }

 private:
  std::mutex mutex_;
  std::optional<Identity> identity_;
};

Pipeline::Pipeline(std::unique_ptr<Executor> executor)
    : executor_(std::move(executor)), identity_(std::make_shared<LazyIdentity>()) {}
Pipeline::Pipeline(Pipeline&&) noexcept = default;
Pipeline& Pipeline::operator=(Pipeline&&) noexcept = default;
Pipeline::~Pipeline() = default;

Pipeline Pipeline::from_spec(Spec spec, const Options& options) {
  auto plan = compile(std::make_shared<const Spec>(std::move(spec)));
  return Pipeline(std::make_unique<Executor>(std::move(plan), options, Standing{}));
}

PipelineBuilder Pipeline::build() { return {}; }

const Spec& Pipeline::spec() const { return *plan().spec; }
const Plan& Pipeline::plan() const { return *executor_->plan(); }
Device Pipeline::device() const { return plan().device; }
std::int64_t Pipeline::steps_per_epoch() const { return plan().sampler->steps_per_epoch(); }
void Pipeline::set_default_memory(const MemoryPtr& memory) {
  executor_->set_default_memory(memory);
}
void Pipeline::start_epoch(std::int64_t epoch) { executor_->start_epoch(epoch); }
std::optional<Batch> Pipeline::next(const Stream& consumer) { return executor_->next(&consumer); }
std::optional<Batch> Pipeline::next() { return executor_->next(nullptr); }
void Pipeline::stop() { executor_->stop(); }
Stats Pipeline::stats() const { return executor_->stats(); }

BatchPosition Pipeline::position() const { return executor_->standing().position; }

std::string Pipeline::state() const {
  return write_state(identity_->of(plan()), executor_->standing());
}

void Pipeline::restore(std::string_view state, const RestoreOptions& options) {
  const auto [position, bad] = read_state(state, identity_->of(plan()), options.allow_changes);
  const auto [epoch, step, cursor] = position;
  const Sampler& sampler = *plan().sampler;
  FOREBAY_REQUIRE(epoch >= 0 && cursor >= 0 && cursor <= sampler.order().length(), invalid,
                  "the state stands behind {} samples of epoch {}; an epoch has {} samples.",
                  cursor, epoch, sampler.order().length());
  executor_ = std::make_unique<Executor>(executor_->plan(), executor_->options(),
                                         Standing{sampler.at(epoch, cursor), bad});
}

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
