#pragma once

#include <forebay/ops/expr/execute.h>

// The two executors behind `prepare`. The program's tables are on the device already.
namespace forebay::expr {

std::unique_ptr<Body> prepare_cpu(const Program& program);
/// Errors: unsupported in a build without CUDA.
std::unique_ptr<Body> prepare_cuda(const Program& program, const Context& context);

}  // namespace forebay::expr
