#pragma once

#include <memory>

#include <forebay/ops/expr/expression.h>
#include <forebay/ops/op.h>

namespace forebay::expr {

/// The body that runs `program`: its inputs are the sources by number (their data pointers; dtype
/// and layout are the program's), its outputs are arrays of the program's shape, dense or strided.
///
/// CPU: tiles that fit in L1, each instruction a compiled loop over the tile, tiles spread by
/// parallel_for.
/// CUDA: one generated kernel (see `cuda_source`), 16-byte accesses where the addresses allow it at
/// run time, 64-bit index arithmetic only where the byte extents need it. Tables are uploaded with
/// `context`.
std::unique_ptr<Body> prepare(const Program& program, const Context& context);

/// `program` with its tables on the device of `context`.
Program on_device(const Program& program, const Context& context);

/// The CUDA C++ of the kernel for `program`, readable: what `plan --dump-kernels` writes.
std::string cuda_source(const Program& program);

}  // namespace forebay::expr
