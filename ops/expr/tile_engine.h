#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <forebay/ops/expr/cpu_loops.h>
#include <forebay/ops/expr/expression.h>
#include <forebay/ops/expr/loop_nest.h>

namespace forebay::expr {

/// Runs a program on the CPU, tile by tile: each instruction is one compiled loop over the tile, whose operands are
/// still in the first-level cache. Dense leaves and outputs are read and written where they lie; strided ones go
/// through a buffer. What is the same for every run is decided here; runs may come from any number of threads, and use
/// buffers of the calling thread.
class TileEngine {
 public:
  /// Tables are host arrays.
  explicit TileEngine(const Program& program);

  const Program& program() const { return program_; }
  /// Elements of a tile.
  std::int64_t tile() const { return tile_; }

  /// Elements begin .. begin + n of every output. `leaves` has the address of each leaf's element with index zero (see
  /// leaf_addresses), `outputs` likewise; null for one that nobody reads.
  void run(const LoopNest& nest, std::span<const std::byte* const> leaves,
           std::span<std::byte* const> outputs, std::int64_t begin, std::int64_t n) const;

  /// Appends the address of each leaf's element with index zero.
  void leaf_addresses(std::span<const ArrayView> sources,
                      std::vector<const std::byte*>& addresses) const;
  /// For a store: source 0 is `result`, source 1 + i is `sources[i]`.
  void leaf_addresses(std::span<const ArrayView> sources, std::vector<const std::byte*>& addresses,
                      const void* result) const;

 private:
  /// One instruction: its loop, and where its buffer begins.
  struct Step {
    CpuLoop* loop = nullptr;  ///< null for leaves and constants
    std::size_t buffer = 0;   ///< bytes from the start of the tile's memory (constants: of theirs)
  };
  struct Free {
    void operator()(std::byte* memory) const;
  };
  using Buffer = std::unique_ptr<std::byte, Free>;
  struct Workspace;

  static Buffer buffer_of(std::size_t bytes);
  static Workspace& workspace();
  void choose_loops();
  void place_buffers();
  void fill_constants();
  void run_tile(const LoopNest& nest, std::span<const std::byte* const> leaves,
                std::span<std::byte* const> outputs, std::int64_t begin, std::int64_t n,
                Workspace& work) const;
  std::byte* dense_output(const LoopNest& nest, std::span<std::byte* const> outputs, int number,
                          std::int64_t offset) const;

  Program program_;
  std::vector<Step> steps_;
  std::int64_t tile_ = 0;
  std::size_t tile_memory_ = 0;  // bytes of a tile's buffers
  Buffer constants_;
};

}  // namespace forebay::expr
