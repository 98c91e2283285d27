#include <forebay/pipeline/runner.h>

#include <algorithm>
#include <chrono>

#include <forebay/array/cuda/range.h>
#include <forebay/array/require.h>
#include <forebay/ops/expr/execute.h>
#include <forebay/pipeline/failure.h>
#include <forebay/pipeline/mistakes.h>

namespace forebay {

Runner::Runner(std::shared_ptr<const Plan> plan, int number, const Machine& machine)
    : plan_(std::move(plan)),
      number_(number),
      machine_(machine),
      map_(map_memory(*plan_)),
      fields_(std::make_shared<const BatchFields>(*plan_)),
      bodies_(plan_->steps.size()) {
  std::size_t host_bytes = 0, device_bytes = 0;
  for (std::size_t i = 0; i < bodies_.size(); ++i) {
    times_.push_back({.label = plan_->steps[i].label});
    prepare(i);
    if (bodies_[i] == nullptr) continue;
    std::size_t& bytes = plan_->steps[i].device.is_cuda() ? device_bytes : host_bytes;
    bytes = std::max(bytes, bodies_[i]->scratch_bytes());
  }
  const auto scratch = [](std::size_t bytes, const Context& context) {
    return Array::empty({static_cast<std::int64_t>(bytes)}, Dtype::u8, context.scratch,
                        context.stream);
  };
  scratch_host_ = scratch(host_bytes, machine.cpu);
  if (machine.gpu) scratch_device_ = scratch(device_bytes, *machine.gpu);
  find_segments();
  const bool any_gpu =
      std::any_of(segments_.begin(), segments_.end(), [](const Segment& s) { return s.gpu; });
  graph_fallback_ = !any_gpu               ? "no step runs on a GPU"
                    : machine.time_steps   ? "time_steps measures each step by itself"
                    : !machine.cuda_graphs ? "cuda_graphs is off"
                                           : "";
}

Runner::~Runner() = default;

void Runner::prepare(std::size_t i) {
  const PlanStep& step = plan_->steps[i];
  if (step.kind == PlanStep::Kind::load || step.kind == PlanStep::Kind::copy) return;
  const Context& context = step.device.is_cuda() ? *machine_.gpu : machine_.cpu;
  const auto name = plan_->spec->stages[static_cast<std::size_t>(step.stages.back())].op.name();
  try {
    if (step.kind == PlanStep::Kind::pointwise) {
      bodies_[i] = expr::prepare(step.program, context);
      return;
    }
    const Op& op = plan_->spec->stages[static_cast<std::size_t>(step.kernel_stage)].op;
    bodies_[i] = op.entry().body(step.device.kind)(op, step.problem, context);
  } catch (...) {
    rethrow_at(fmt::format("{}, preparing it for {}", title(i), to_string(step.device)),
               ErrorKind::device, name);
  }
}

void Runner::find_segments() {
  for (std::size_t i = 0; i < plan_->steps.size(); ++i) {
    const PlanStep& step = plan_->steps[i];
    if (step.kind == PlanStep::Kind::load) continue;
    const bool gpu = step.device.is_cuda();
    if (segments_.empty() || segments_.back().gpu != gpu)
      segments_.push_back({.gpu = gpu, .begin = i, .end = i, .label = {}});
    segments_.back().end = i + 1;
    segments_.back().label += (segments_.back().label.empty() ? "graph of " : ", ") + step.label;
  }
}

std::string Runner::title(std::size_t i) const {
  const PlanStep& step = plan_->steps[i];
  if (step.stages.empty()) return step.label;
  if (step.stages.size() == 1) return stage_title(*plan_->spec, step.stages[0]);
  std::string numbers;
  for (const int stage : step.stages)
    numbers += (numbers.empty() ? "" : ", ") + std::to_string(stage + 1);
  return fmt::format("stages {} ({})", numbers, step.label);
}

ArrayView Runner::view(int value, const Slot& slot) const {
  const PlanValue& v = plan_->values[static_cast<std::size_t>(value)];
  const MemoryMap::Place& place = map_.places[static_cast<std::size_t>(value)];
  const auto base = [&]() -> const Array& {
    switch (place.block) {
      case MemoryMap::Block::slot_host:
        return slot.host;
      case MemoryMap::Block::slot_device:
        return slot.device;
      case MemoryMap::Block::shared_host:
        return machine_.shared_host;
      default:
        return machine_.shared_device;
    }
  };
  return {base().as<char>() + place.offset, v.spec.dtype, v.device, v.spec.shape,
          dense_strides(v.spec.shape)};
}

Binding& Runner::bind(Slot& slot) {
  const auto number = static_cast<std::size_t>(number_);
  if (slot.bindings.size() <= number) slot.bindings.resize(number + 1);
  if (slot.bindings[number] != nullptr) return *slot.bindings[number];
  auto binding = std::make_shared<Binding>();
  for (const PlanStep& step : plan_->steps) {
    Binding::Step& bound = binding->steps.emplace_back();
    for (const int value : step.inputs)
      bound.inputs.push_back(view(value, slot));
    for (const int value : step.outputs)
      bound.outputs.push_back(value < 0 ? ArrayView{} : view(value, slot));
    if (machine_.time_steps && step.device.is_cuda() && step.kind != PlanStep::Kind::load) {
      bound.begin = cuda::create_timing_event(step.device);
      bound.end = cuda::create_timing_event(step.device);
    }
  }
  const auto numbers = [&](const Array& block, std::size_t offset, std::int64_t count) {
    return ArrayView{block.as<char>() + offset, Dtype::i64, block.device(), {count}, {1}};
  };
  const auto fill = [&](BatchInfo& info, const Array& block) {
    info.seed = plan_->spec->seed;
    info.sample_ids = numbers(block, map_.ids_offset, plan_->batch_size);
    info.position = numbers(block, map_.position_offset, 3);
  };
  fill(binding->on_cpu, slot.host);
  if (machine_.gpu) fill(binding->on_gpu, slot.device);
  binding->graphs.resize(segments_.size());
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(bindings_, [](const auto& old) { return old.expired(); });
    bindings_.push_back(binding);
  }
  slot.bindings[number] = std::move(binding);
  return *slot.bindings[number];
}

void Runner::run(Slot& slot, BatchPosition position) {
  Binding& binding = bind(slot);
  for (BatchInfo* info : {&binding.on_cpu, &binding.on_gpu}) {
    info->epoch = position.epoch;
    info->batch = position.step;
  }
  if (machine_.gpu) machine_.gpu->stream.wait(slot.copied);
  bool host_must_wait = false;
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    if (segments_[i].gpu) {
      run_on_gpu(i, binding);
      host_must_wait = true;
      continue;
    }
    if (host_must_wait) {
      machine_.gpu->stream.record(slot.ready);
      slot.ready.synchronize();
      host_must_wait = false;
    }
    run_on_cpu(segments_[i], binding);
  }
  if (machine_.gpu) machine_.gpu->stream.record(slot.ready);
}

void Runner::run_step(std::size_t i, Binding& binding) {
  const PlanStep& step = plan_->steps[i];
  const Binding::Step& bound = binding.steps[i];
  const bool gpu = step.device.is_cuda();
  const BatchInfo& info = gpu ? binding.on_gpu : binding.on_cpu;
  const cuda::Range range(step.label, info.epoch, info.batch);
  try {
    const Stream& stream = gpu ? machine_.gpu->stream : machine_.cpu.stream;
    if (step.kind == PlanStep::Kind::copy) {
      copy(bound.inputs[0], bound.outputs[0], stream);
      return;
    }
    const Array& scratch = gpu ? scratch_device_ : scratch_host_;
    bodies_[i]->run(bound.inputs, bound.outputs,
                    {.stream = stream, .scratch = scratch.data(), .batch = &info});
  } catch (...) {
    const auto op =
        step.stages.empty()
            ? std::string_view()
            : plan_->spec->stages[static_cast<std::size_t>(step.stages.back())].op.name();
    rethrow_at(fmt::format("{}, epoch {}, batch {}", title(i), info.epoch, info.batch),
               ErrorKind::device, op);
  }
}

void Runner::run_on_gpu(std::size_t number, Binding& binding) {
  Segment& segment = segments_[number];
  const Stream& stream = machine_.gpu->stream;
  const auto plainly = [&] {
    for (std::size_t i = segment.begin; i < segment.end; ++i)
      run_step(i, binding);
  };
  if (machine_.time_steps) {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = segment.begin; i < segment.end; ++i) {
      Binding::Step& step = binding.steps[i];
      read_time(i, step);
      stream.record(step.begin);
      run_step(i, binding);
      stream.record(step.end);
      step.timed = true;
    }
    return;
  }
  std::unique_lock lock(mutex_);
  const bool graphs = graph_fallback_.empty();
  lock.unlock();
  if (!graphs || !segment.ran) {
    plainly();
    segment.ran = true;
    return;
  }
  std::shared_ptr<cuda::Graph>& graph = binding.graphs[number];
  if (graph == nullptr) {
    try {
      graph = cuda::Graph::capture(stream, plainly);
    } catch (const Error& error) {
      lock.lock();
      graph_fallback_ = fmt::format("capture failed: {}", error.what());
      lock.unlock();
      plainly();
      return;
    }
  }
  const cuda::Range range(segment.label, binding.on_gpu.epoch, binding.on_gpu.batch);
  graph->launch(stream);
  lock.lock();
  replays_ += number == 0 || !std::any_of(segments_.begin(),
                                          segments_.begin() + static_cast<std::ptrdiff_t>(number),
                                          [](const Segment& s) { return s.gpu; });
}

void Runner::run_on_cpu(const Segment& segment, Binding& binding) {
  for (std::size_t i = segment.begin; i < segment.end; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    run_step(i, binding);
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    const std::lock_guard lock(mutex_);
    times_[i].total_ms += took.count();
    ++times_[i].runs;
  }
}

/// Of the last batch in this slot whose time was not read yet. Needs the mutex.
void Runner::read_time(std::size_t i, Binding::Step& step) {
  if (!std::exchange(step.timed, false)) return;
  step.end.synchronize();
  times_[i].total_ms += cuda::elapsed_ms(step.begin, step.end);
  ++times_[i].runs;
}

void Runner::add_to(Stats& stats) {
  const std::lock_guard lock(mutex_);
  for (const auto& weak : bindings_) {
    const auto binding = weak.lock();
    for (std::size_t i = 0; binding != nullptr && i < times_.size(); ++i)
      read_time(i, binding->steps[i]);
  }
  for (std::size_t i = 0; i < times_.size(); ++i) {
    if (i == stats.steps.size()) stats.steps.push_back({.label = times_[i].label});
    stats.steps[i].total_ms += times_[i].total_ms;
    stats.steps[i].runs += times_[i].runs;
  }
  stats.graph_replays += replays_;
  if (stats.graph_fallback.empty()) stats.graph_fallback = graph_fallback_;
}

}  // namespace forebay
