#pragma once

#include <forebay/ops/expr/execute.h>

// The two executors behind `prepare`.
namespace forebay::expr {

/// The program's tables are host arrays.
std::unique_ptr<Body> prepare_cpu(const Program& program);
/// Tables are uploaded with `context`. Errors: unsupported in a build without CUDA.
std::unique_ptr<Body> prepare_cuda(const Program& program, const Context& context);

}  // namespace forebay::expr
