#include "kit/timing.h"

#include <chrono>
#include <numeric>

#include <forebay/array/cuda/graph.h>

namespace forebay::bench {

double time_ms(const Stream& stream, int runs, const std::function<void()>& enqueue) {
  if (stream.device().is_cuda()) {
    Event begin = cuda::create_timing_event(stream.device());
    Event end = cuda::create_timing_event(stream.device());
    // Clocks and caches are then as they stay when nothing else runs.
    for (int i = 0; i < runs; ++i)
      enqueue();
    stream.record(begin);
    for (int i = 0; i < runs; ++i)
      enqueue();
    stream.record(end);
    end.synchronize();
    return static_cast<double>(cuda::elapsed_ms(begin, end)) / runs;
  }
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < runs; ++i)
    enqueue();
  stream.synchronize();
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
  return took.count() / runs;
}

std::unique_ptr<Program> warm_program(std::shared_ptr<const Plan> plan) {
  auto program = std::make_unique<Program>(std::move(plan));
  std::vector<std::int64_t> samples(static_cast<std::size_t>(program->plan().batch_size));
  std::iota(samples.begin(), samples.end(), std::int64_t{0});
  program->read(samples);
  for (int i = 0; i < 3; ++i)
    program->run();
  program->stream().synchronize();
  return program;
}

}  // namespace forebay::bench
