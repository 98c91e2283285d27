#pragma once

#include <iosfwd>
#include <memory>
#include <string>

#include "rows.h"

namespace forebay::bench {

/// The plan of a row on a device, which need not be there.
std::shared_ptr<const Plan> plan_of(const Row& row, Size size, Device device);
/// A row as a JSON object: id, text, target, shape, dtype, bytes, flops, compute.
std::string describe(const Row& row, Size size);

/// Answers requests until `in` ends, each a JSON object on a line with `do`:
///     versions             -> forebay, CUDA toolkit, LibTorch of this build; device, threads
///     rate compute         -> flops_per_ms of a product of large matrices
///     open row             -> steps: labels of the plan's
///     save folder          -> arrays {name: path}, expected: path, rtol, atol: for the peers
///     time runs            -> ms of one run of the row's steps
///     floor runs           -> ms of one copy of the row's bytes
///     close
/// What goes wrong is {"error": text}, and serving goes on.
void serve(std::istream& in, std::ostream& out, Size size, Device device);

}  // namespace forebay::bench
