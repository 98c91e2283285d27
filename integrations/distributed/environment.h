#pragma once

// Internal: what torchrun tells a process.

#include <cstdint>
#include <string>

namespace forebay::distributed {

struct Environment {
  int rank = 0, size = 1, local_rank = 0;
  std::string address;  ///< of the store; empty with one rank
  std::uint16_t port = 0;
  bool keeps_store = false;  ///< this rank does; else somebody has it already
  /// Begins the keys in the store: differs when torchrun starts the ranks again.
  std::string run = "0";
};

/// Errors: see `join`.
Environment read_environment();

}  // namespace forebay::distributed
