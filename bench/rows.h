#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kit/data.h"

namespace forebay::bench {

/// The sizes of the rows: for one GPU, for the cores of one CPU, or so small that a test
/// runs them all.
enum class Size : std::uint8_t { gpu, cpu, smoke };

/// What a row computes, declared as a user would.
struct Work {
  Data data;                                             ///< its input `x`
  PipelineBuilder pipeline;                              ///< on that
  std::vector<std::pair<std::string, Array>> constants;  ///< what peers need besides
  double bytes = 0;                                      ///< that any way of doing it must move
  double flops = 0;                                      ///< of a matrix product
  Compute compute = Compute::f32;                        ///< of that product
  double relative = 1e-5, absolute = 1e-5;               ///< how far results of others may be off
};

struct Row {
  std::string id;
  std::string text;   ///< for people
  double target = 0;  ///< of the time over the floor's on a GPU
  std::function<Work(Size)> work;
};

/// In the order of the table; rows on the same data follow each other.
const std::vector<Row>& rows();
/// Errors: invalid, with the ids there are.
const Row& row(std::string_view id);

}  // namespace forebay::bench
