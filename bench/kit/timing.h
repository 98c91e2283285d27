#pragma once

#include <functional>

#include <forebay/pipeline/program.h>

namespace forebay::bench {

/// Milliseconds of one of `runs` calls of `enqueue` that follow each other on `stream`: between
/// CUDA events, behind as many calls that are not timed; or by the host's clock around the CPU
/// stream's work.
double time_ms(const Stream& stream, int runs, const std::function<void()>& enqueue);

/// A program on the first samples of its source, warm: every kernel compiled, the graph captured.
std::unique_ptr<Program> warm_program(std::shared_ptr<const Plan> plan);

}  // namespace forebay::bench
