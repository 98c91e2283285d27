#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <forebay/ops/expr/cpu_levels.h>
#include <forebay/ops/expr/expression.h>
#include <forebay/ops/expr/loop_nest.h>

namespace forebay::expr {

/// How tiles of one program with outputs of one layout lie in memory, so that as little as
/// possible is copied.
struct Traversal {
  enum class Access : std::uint8_t {
    direct,    ///< a tile's elements are neighbours in memory
    uniform,   ///< one element for the whole tile
    index,     ///< in no memory
    periodic,  ///< few elements over and over: expanded once a run
    strided,   ///< through a buffer
  };
  struct Array {
    Access access = Access::strided;
    std::int64_t size = 0;    ///< bytes of an element
    std::int64_t period = 0;  ///< elements, where periodic
    std::size_t room = 0;  ///< where periodic: bytes from the start of the thread's room for them
  };

  static constexpr std::int64_t kMinBlockRows = 8;
  static constexpr std::int64_t kMinLookedUp = 4096;  ///< elements of a row

  LoopNest nest;
  std::int64_t tile = 0;  ///< elements of a tile that is no block
  /// A tile lies within one row (the last axis); else it is any run of elements.
  bool by_rows = false;
  /// The axis that some array lies along while the others lie along the last one: whole arrays go
  /// by blocks of both, so that a cache line is used up when it is there. -1: none.
  int block_axis = -1;
  /// The leaf of 8 bits that alone changes along a row: its 256 values are computed, and elements
  /// looked up. -1: none.
  int looked_up = -1;
  /// Dense outputs are written past the caches.
  bool past_cache = false;
  std::vector<Array> leaves;
  std::vector<Array> outputs;
  std::size_t room = 0;  ///< bytes for what is periodic
};

/// Runs a program on the CPU, tile by tile: each instruction is one compiled loop over the tile,
/// whose operands are still in the first-level cache. What is the same for every run is decided
/// here; runs may come from any number of threads, and use buffers of the calling thread.
class TileEngine {
 public:
  struct Tile;  ///< internal

  static constexpr std::int64_t kMinTile = kChunk,
                                kMaxTile = 2048;  // elements that buffers have room for

  /// Tables are host arrays.
  explicit TileEngine(const Program& program, const CpuLevel& level = cpu_level());

  const Program& program() const { return program_; }
  /// For outputs of these strides over the program's shape.
  Traversal traversal(std::span<const Dims> output_strides) const;
  /// Elements begin .. begin + n of every output. `leaves` has the address of each leaf's element
  /// with index zero (see leaf_addresses), `outputs` likewise; null for one that nobody reads.
  void run(const Traversal& traversal, std::span<const std::byte* const> leaves,
           std::span<std::byte* const> outputs, std::int64_t begin, std::int64_t n) const;

  /// The same by blocks, where the traversal has a block axis: blocks first .. last of
  /// block_count().
  void run_blocks(const Traversal& traversal, std::span<const std::byte* const> leaves,
                  std::span<std::byte* const> outputs, std::int64_t first, std::int64_t last) const;
  std::int64_t block_count(const Traversal& traversal) const;

  /// Appends the address of each leaf's element with index zero; null for one in no memory.
  void leaf_addresses(std::span<const ArrayView> sources,
                      std::vector<const std::byte*>& addresses) const;
  /// For a store: source 0 is `result`, source 1 + i is `sources[i]`.
  void leaf_addresses(std::span<const ArrayView> sources, std::vector<const std::byte*>& addresses,
                      const void* result) const;

 private:
  /// One instruction: its loop, and where its buffer begins.
  struct Step {
    CpuLoop* loop = nullptr;  ///< null for leaves, constants and what is part of a later loop
    int operands = 0;
    std::array<int, 3> args{};  ///< instructions
    std::int64_t size = 0;      ///< bytes of an element of the result
    std::size_t buffer = 0;  ///< bytes from the start of the tile's memory (constants: of theirs)
  };
  struct Free {
    void operator()(std::byte* memory) const;
  };
  using Buffer = std::unique_ptr<std::byte, Free>;
  struct Workspace;
  struct Blocks;

  static Buffer buffer_of(std::size_t bytes);
  static Workspace& workspace();
  void prepare(Workspace& work) const;
  void choose_loops();
  void join_pairs();
  void place_buffers();
  bool has_buffer(std::size_t i) const;
  void fill_constants();
  void expand_periodic(const Traversal& traversal, std::span<const std::byte* const> leaves,
                       Workspace& work) const;
  void run_tile(const Tile& tile, Workspace& work) const;
  void compute(const Tile& tile, Workspace& work) const;
  void look_up_row(const Tile& row, Workspace& work) const;
  Operand leaf_value(const Tile& tile, std::size_t leaf, std::byte* buffer,
                     const Workspace& work) const;
  Operand index_value(const Tile& tile, std::size_t leaf, std::uint64_t* buffer) const;
  std::byte* target_in_output(const Tile& tile, int number) const;
  void write_output(const Tile& tile, std::size_t k, const Operand& value) const;
  Blocks blocks_of(const Traversal& traversal) const;
  void read_block(const Tile& tile, std::size_t leaf, std::byte* buffer) const;
  void write_block(const Tile& tile, std::size_t k, const Operand& value) const;

  const CpuLevel* level_;
  Program program_;
  std::vector<Step> steps_;
  std::int64_t loops_ = 0;       // over a tile
  std::int64_t capacity_ = 0;    // elements that buffers have room for
  std::size_t tile_memory_ = 0;  // bytes of a tile's buffers
  Buffer constants_;
};

}  // namespace forebay::expr
