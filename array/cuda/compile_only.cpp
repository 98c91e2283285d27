#include <forebay/array/cuda/compile_only.h>

#include <utility>

namespace forebay::cuda {
namespace {
std::mutex mutex;
std::shared_ptr<CompileOnly::State> active;  // guarded by `mutex`
}  // namespace

std::shared_ptr<CompileOnly::State> compile_only() {
  const std::lock_guard lock(mutex);
  return active;
}

CompileOnly::CompileOnly(std::vector<int> architectures) : state_(std::make_shared<State>()) {
  state_->architectures = std::move(architectures);
  const std::lock_guard lock(mutex);
  state_->outer = std::exchange(active, state_);
}

CompileOnly::~CompileOnly() {
  const std::lock_guard lock(mutex);
  active = state_->outer;
}

int CompileOnly::compiled() const {
  const std::lock_guard lock(state_->mutex);
  return static_cast<int>(state_->compiled.size());
}

std::vector<KernelSource> CompileOnly::sources() const {
  const std::lock_guard lock(state_->mutex);
  return state_->sources;
}

}  // namespace forebay::cuda
