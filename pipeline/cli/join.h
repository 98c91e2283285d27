#pragma once

#include <memory>

#include <forebay/pipeline/ranks.h>

namespace forebay::cli {

/// The ranks that torchrun has started this command among; null when it has not, or for one alone.
/// They are in a library of their own, which is loaded here, since it needs LibTorch.
/// Errors: unsupported where that library is not there; those of `distributed::join`.
std::unique_ptr<RankGroup> join_ranks();

}  // namespace forebay::cli
