#include "kit/op_bench.h"

#include <benchmark/benchmark.h>

#include <forebay/pipeline/memory_map.h>
#include "kit/timing.h"

namespace forebay::bench {
namespace {

std::int64_t bytes_of_batch(const Plan& plan) {
  std::size_t bytes = 0;
  for (const PlanValue& value : plan.values)
    bytes += value.kind == PlanValue::Kind::column ? bytes_of(value.spec) : 0;
  for (const PlanOutput& output : plan.outputs)
    bytes += bytes_of(plan.values[static_cast<std::size_t>(output.value)].spec);
  return static_cast<std::int64_t>(bytes);
}

void measure(benchmark::State& state, const std::function<PipelineBuilder()>& declare,
             Device device) {
  try {
    const Spec spec = declare().device(device).spec();
    const auto program = warm_program(compile(std::make_shared<const Spec>(spec)));
    for (auto iteration : state) {
      static_cast<void>(iteration);
      state.SetIterationTime(time_ms(program->stream(), 1, [&] { program->run(); }) * 1e-3);
    }
    state.SetBytesProcessed(state.iterations() * bytes_of_batch(program->plan()));
  } catch (const std::exception& error) {
    state.SkipWithError(error.what());
  }
}

}  // namespace

bool add(const std::string& name, const std::function<PipelineBuilder()>& declare) {
  std::vector<std::pair<std::string, Device>> devices = {{"/cpu", Device::cpu()}};
  if (cuda_device_count() > 0) devices.emplace_back("/cuda", Device::cuda());
  for (const auto& [suffix, device] : devices) {
    benchmark::RegisterBenchmark(
        (name + suffix).c_str(),
        [declare, device = device](benchmark::State& state) { measure(state, declare, device); })
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
  }
  return true;
}

}  // namespace forebay::bench
