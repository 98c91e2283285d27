#include <forebay/pipeline/program.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include <forebay/array/parallel.h>
#include <forebay/array/require.h>
#include <forebay/array/stream_state.h>
#include <forebay/pipeline/mistakes.h>
#include <forebay/pipeline/runner.h>
#include <forebay/pipeline/source/columns.h>

namespace forebay {
namespace {

std::int64_t* numbers_at(const Array& block, std::size_t offset) {
  return reinterpret_cast<std::int64_t*>(block.as<char>() + offset);
}

std::size_t position_of(std::string_view name, const std::vector<std::string>& names,
                        std::string_view what) {
  const auto found = std::find(names.begin(), names.end(), name);
  FOREBAY_REQUIRE(found != names.end(), invalid, "the program has no {} `{}`; it has {}.{}", what,
                  name, quoted(names), did_you_mean(std::string(name), names));
  return static_cast<std::size_t>(found - names.begin());
}

void require_one_device(const Plan& plan) {
  const DeviceKind other = plan.device.is_cuda() ? DeviceKind::cpu : DeviceKind::cuda;
  FOREBAY_REQUIRE(!plan.has_steps_on(other), unsupported,
                  "pipeline {} has stages on the CPU and on a GPU, but a program runs on one "
                  "device; leave out the `device` of its stages.",
                  plan.spec->name);
}

}  // namespace

Program::Program(std::shared_ptr<const Plan> plan, const Options& options)
    : plan_(std::move(plan)) {
  require_device(plan_->device);
  require_one_device(*plan_);
  const MemoryMap map = map_memory(*plan_);
  machine_ = std::make_unique<Machine>(make_machine(*plan_, map, options));
  runner_ = std::make_unique<Runner>(plan_, 0, *machine_);
  slot_ = std::make_unique<Slot>(stream());
  const auto block = [&](std::size_t bytes, const MemoryPtr& memory) {
    return Array::empty({static_cast<std::int64_t>(bytes)}, Dtype::u8, memory, stream());
  };
  const bool gpu = plan_->device.is_cuda();
  slot_->host = block(map.slot_host, gpu ? pinned_memory() : machine_->cpu.memory);
  if (gpu) {
    slot_->device = block(map.slot_device, machine_->gpu->memory);
    slot_->ready = Event::create(plan_->device);
  }
  std::int64_t* const position = numbers_at(slot_->host, map.position_offset);
  position[0] = position[1] = 0;
  position[2] = static_cast<std::int64_t>(plan_->spec->seed);
  std::int64_t* const ids = numbers_at(slot_->host, map.ids_offset);
  std::iota(ids, ids + plan_->batch_size, std::int64_t{0});
  send(map.ids_offset + static_cast<std::size_t>(plan_->batch_size) * sizeof(std::int64_t));
}

Program::~Program() {
  try {
    stream().synchronize();
  } catch (...) {  // the caller was told by its own `synchronize`, or did not ask
  }
}

const Stream& Program::stream() const {
  return machine_->gpu ? machine_->gpu->stream : machine_->cpu.stream;
}

/// The first `bytes` of what the host has staged, to the GPU.
void Program::send(std::size_t bytes) {
  if (!machine_->gpu) return;
  const auto front = [&](const Array& block) {
    return ArrayView{
        block.data(), Dtype::u8, block.device(), {static_cast<std::int64_t>(bytes)}, {1}};
  };
  copy(front(slot_->host), front(slot_->device), stream());
  stream().synchronize();
}

Array Program::array_of(int value) const {
  const ArrayView view = runner_->view(value, *slot_);
  return Array(view, (view.device.is_cuda() ? slot_->device : slot_->host).owner());
}

Array Program::input(std::string_view name) const {
  const auto names = names_of(plan_->spec->source->columns());
  const int column = static_cast<int>(position_of(name, names, "column"));
  for (const PlanStep& step : plan_->steps) {
    if (step.kind != PlanStep::Kind::load) continue;
    const auto found = std::find(step.inputs.begin(), step.inputs.end(), column);
    if (found != step.inputs.end())
      return array_of(step.outputs[static_cast<std::size_t>(found - step.inputs.begin())]);
  }
  FOREBAY_REQUIRE(!machine_->gpu, invalid, "no step reads the column `{}`, so it is not on {}.",
                  name, to_string(plan_->device));
  return array_of(column);
}

Array Program::output(std::string_view name) const {
  const auto& names = runner_->fields()->names;
  return array_of(plan_->outputs[position_of(name, names, "output")].value);
}

void Program::read(std::span<const std::int64_t> samples) {
  FOREBAY_REQUIRE(static_cast<std::int64_t>(samples.size()) == plan_->batch_size, invalid,
                  "the program of pipeline {} takes {} samples, but {} were given.",
                  plan_->spec->name, plan_->batch_size, samples.size());
  stream().synchronize();  // for what still reads them
  std::copy(samples.begin(), samples.end(), numbers_at(slot_->host, runner_->map().ids_offset));
  const Source& source = *plan_->spec->source;
  parallel_blocks(plan_->batch_size, source.grain(), [&](std::int64_t begin, std::int64_t end) {
    std::vector<ArrayView> targets;
    for (int i = 0; i < static_cast<int>(source.columns().size()); ++i)
      targets.push_back(slice(runner_->view(i, *slot_), 0, begin, end));
    source.read(
        samples.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)),
        targets);
  });
  send(runner_->map().travelling);
}

void Program::run() {
  if (machine_->gpu) {
    runner_->run(*slot_, {});
  } else {
    stream().enqueue([this] { runner_->run(*slot_, {}); });
  }
}

}  // namespace forebay
