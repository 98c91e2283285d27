#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include <forebay/ops/expr/expression.h>

namespace forebay::expr {

/// A pointwise program evaluated piece by piece by a CPU body of a kernel op: what is fused before
/// it (a load) or behind it (a store). Thread-safe; buffers are the calling thread's own.
class Tile {
 public:
  /// `program` has one output. Tables are host arrays.
  explicit Tile(const Program& program);
  ~Tile();
  Tile(Tile&&) noexcept;
  Tile& operator=(Tile&&) noexcept;

  /// Elements begin .. begin + n of the program's output, in row-major order: where they lie
  /// when the program is a dense leaf and nothing has to be computed, else in `buffer`, which
  /// has room for them.
  const void* load(std::span<const ArrayView> sources, std::int64_t begin, std::int64_t n,
                   void* buffer) const;
  /// The program's source 0 is `result`, whose element 0 is element `begin` of the whole; its
  /// source 1 + i is `sources[i]`. Writes elements begin .. begin + n of `out`, which is dense;
  /// large outputs past the caches, so other threads see them after the parallel_for (or the
  /// stream's task) around.
  void store(const void* result, std::span<const ArrayView> sources, std::int64_t begin,
             std::int64_t n, void* out) const;
  /// Whether the program is source 0 as it is, dense: a body then may write straight into
  /// its output.
  bool is_plain() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace forebay::expr
