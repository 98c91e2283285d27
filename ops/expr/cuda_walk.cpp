#include <forebay/ops/expr/cuda_walk.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <optional>

namespace forebay::expr {
namespace {

constexpr std::int64_t kMostTogether = 4;     // a thread's registers hold so many rows of a pack
constexpr std::size_t kTileBytes = 48 << 10;  // of shared memory that every device gives a block
constexpr std::int64_t kLeastTile = 8;  // extents from which a square through shared memory pays

Dims in_order(const Dims& dims, const Dims& axes) {
  Dims result;
  for (std::int64_t axis : axes)
    result.push_back(dims[static_cast<int>(axis)]);
  return result;
}

LoopNest in_order(LoopNest nest, const Dims& axes) {
  nest.shape = in_order(nest.shape, axes);
  for (Dims& strides : nest.leaves)
    strides = in_order(strides, axes);
  for (Dims& strides : nest.outputs)
    strides = in_order(strides, axes);
  return nest;
}

/// The nest whose last axes are those along which output 0 is written densest.
LoopNest nest_by_output(const Program& program, std::span<const Dims> output_strides) {
  const Dims& first = output_strides[0];
  Dims axes = first;
  std::iota(axes.begin(), axes.end(), 0);
  // An axis of one element has no place of its own.
  const auto reach = [&](std::int64_t axis) {
    return program.shape[static_cast<int>(axis)] == 1 ? 0 : std::abs(first[static_cast<int>(axis)]);
  };
  if (!is_dense(program.shape, first)) {
    std::stable_sort(axes.begin(), axes.end(),
                     [&](std::int64_t a, std::int64_t b) { return reach(a) > reach(b); });
  }
  Program ordered{
      .shape = in_order(program.shape, axes), .leaves = program.leaves, .code = {}, .outputs = {}};
  for (Program::Leaf& leaf : ordered.leaves)
    leaf.strides = in_order(leaf.strides, axes);
  std::vector<Dims> outputs;
  for (const Dims& strides : output_strides)
    outputs.push_back(in_order(strides, axes));
  return loop_nest(ordered, outputs);
}

/// The nest of the arrays that lie in memory.
LoopNest memory_of(const Program& program, const LoopNest& nest) {
  LoopNest result{.shape = nest.shape, .leaves = {}, .outputs = nest.outputs, .count = nest.count};
  for (std::size_t i = 0; i < nest.leaves.size(); ++i) {
    if (!program.leaves[i].is_index()) result.leaves.push_back(nest.leaves[i]);
  }
  return result;
}

template <class Call>
void each_array(const LoopNest& nest, const Call& call) {
  std::for_each(nest.leaves.begin(), nest.leaves.end(), call);
  std::for_each(nest.outputs.begin(), nest.outputs.end(), call);
}

/// The axes with `before` and `last` at the end.
Dims axes_ending(int rank, int before, int last) {
  Dims axes;
  for (int axis = 0; axis < rank; ++axis) {
    if (axis != before && axis != last) axes.push_back(axis);
  }
  axes.push_back(before);
  axes.push_back(last);
  return axes;
}

/// Whether a thread that takes all of axis `k` at several places on axis `along` moves only neighbours in memory, in
/// some array neighbours on both axes: bytes of pixels with their channels between them.
bool interleaves(const LoopNest& nest, int k, int along) {
  bool all = true, any = false;
  each_array(nest, [&](const Dims& strides) {
    const bool between = strides[k] == 1 && strides[along] == nest.shape[k];
    any |= between;
    all &= between || strides[along] == 0 || strides[along] == 1;
  });
  return all && any;
}

std::optional<Dims> find_together(const LoopNest& nest) {
  const int rank = nest.shape.rank;
  for (int k = rank - 1; k >= 0; --k) {
    if (nest.shape[k] > kMostTogether) continue;
    for (int along = rank - 1; along >= 0; --along) {
      if (along != k && interleaves(nest, k, along)) return axes_ending(rank, k, along);
    }
  }
  return {};
}

/// Leaves that lie along axis `k` and not along the last one.
bool lies_across(const Dims& strides, int k) {
  return strides[k] == 1 && strides[strides.rank - 1] != 0 && strides[strides.rank - 1] != 1;
}

std::optional<Dims> find_tiles(const LoopNest& nest) {
  const int last = nest.shape.rank - 1;
  if (nest.shape[last] < kLeastTile) return {};
  std::optional<Dims> found;
  std::ptrdiff_t most = 0;
  for (int k = 0; k < last; ++k) {
    const std::ptrdiff_t across =
        std::count_if(nest.leaves.begin(), nest.leaves.end(),
                      [&](const Dims& strides) { return lies_across(strides, k); });
    if (nest.shape[k] < kLeastTile || across <= most) continue;
    most = across;
    found = axes_ending(nest.shape.rank, k, last);
  }
  return found;
}

/// The side of squares in shared memory of the leaves that lie across: rows of 128 bytes and more where they fit;
/// 0 where none do.
int side_of(const Program& program, const LoopNest& nest) {
  std::size_t widest = 1;
  for (std::size_t i = 0; i < nest.leaves.size(); ++i) {
    if (!program.leaves[i].is_index() && lies_across(nest.leaves[i], nest.shape.rank - 2))
      widest = std::max(widest, size_of(program.leaves[i].dtype));
  }
  const auto fits = [&](std::size_t side) {
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < nest.leaves.size(); ++i) {
      const std::size_t size = size_of(program.leaves[i].dtype);
      if (!program.leaves[i].is_index() && lies_across(nest.leaves[i], nest.shape.rank - 2))
        bytes += side * (side * size + std::max<std::size_t>(size, 4));  // Tile::words
    }
    return bytes <= kTileBytes;
  };
  for (std::size_t side = widest == 1 ? 128 : widest <= 4 ? 64 : 32; side >= 32; side /= 2) {
    if (fits(side)) return static_cast<int>(side);
  }
  return 0;
}

Way way_of(const Dims& strides, const CudaWalk& walk) {
  if (walk.flat) return LoopNest::is_scalar(strides) ? Way::scalar : Way::along;
  if (LoopNest::is_scalar(strides)) return Way::scalar;
  const int last = strides.rank - 1;
  if (strides[last] == 0) return Way::constant;
  if (strides[last] == 1) return Way::along;
  if (walk.together > 1) return Way::interleaved;
  if (walk.form == CudaWalk::Form::tiles && lies_across(strides, last - 1)) return Way::across;
  return Way::apart;
}

std::vector<float> held_values(const Program::Leaf& leaf, const CudaWalk& walk, std::size_t i) {
  const bool on_host = leaf.source < 0 && leaf.table.device() == Device::cpu();
  if (!on_host || leaf.dtype != Dtype::f32 || !walk.is_common(i) || walk.nest.count == 0) return {};
  const Dims& strides = walk.nest.leaves[i];
  const bool by_row = walk.leaves[i] == Way::constant;
  std::vector<float> values;
  for (int row = 0; row < (by_row ? walk.together : 1); ++row)
    values.push_back(
        leaf.table.as<float>()[leaf.offset + (by_row ? row * strides[strides.rank - 2] : 0)]);
  return values;
}

/// Elements of the widest array that is moved in packs, in 16 bytes.
int pack_of(const Program& program, const CudaWalk& walk) {
  std::size_t widest = 1;
  for (std::size_t i = 0; i < walk.leaves.size(); ++i) {
    const Way way = walk.leaves[i];
    if (way != Way::scalar && way != Way::constant && way != Way::index)
      widest = std::max(widest, size_of(program.leaves[i].dtype));
  }
  for (int output : program.outputs)
    widest = std::max(widest, size_of(program.code[static_cast<std::size_t>(output)].dtype));
  int pack = static_cast<int>(16 / widest);
  // Squares in shared memory are of words of four bytes.
  for (std::size_t i = 0; i < walk.leaves.size(); ++i) {
    if (walk.leaves[i] == Way::across)
      pack = std::max(pack, static_cast<int>(4 / size_of(program.leaves[i].dtype)));
  }
  return pack;
}

/// Bytes of the accesses that move packs of `elements`: kAccessBytes in expr.cu.
std::uint64_t access_bytes(int elements, Dtype dtype) {
  const std::uint64_t bytes = static_cast<std::uint64_t>(elements) * size_of(dtype);
  return bytes % 16 == 0 ? 16 : bytes & (~bytes + 1);
}

}  // namespace

bool CudaWalk::is_common(std::size_t i) const {
  if (leaves[i] != Way::scalar && leaves[i] != Way::constant) return false;
  bool common = true;
  for (int axis = 0; axis < outer_rank() && leaves[i] != Way::scalar; ++axis)
    common &= nest.leaves[i][axis] == 0;
  return common;
}

bool allows_packs(const CudaWalk& walk, std::uint64_t address, Dtype dtype, const Dims& strides,
                  Way way) {
  const int last = strides.rank - 1;
  // The axes on which packs lie, and the elements of one.
  int first_axis = last, last_axis = last, elements = walk.pack;
  if (way == Way::interleaved) {
    first_axis = last - 1;
    elements = walk.pack * walk.together;
  } else if (way == Way::across) {
    first_axis = last_axis = last - 1;
    elements = size_of(dtype) > 4 ? static_cast<int>(16 / size_of(dtype)) : 4;  // Tile::kAcross
  } else if (way != Way::along) {
    return true;
  }
  std::uint64_t bits = address;
  for (int axis = 0; axis <= last; ++axis) {
    if (axis < first_axis || axis > last_axis)
      bits |= static_cast<std::uint64_t>(strides[axis]) * size_of(dtype);
  }
  return bits % access_bytes(elements, dtype) == 0;
}

CudaWalk cuda_walk(const Program& program, std::span<const Dims> output_strides) {
  CudaWalk walk;
  walk.nest = nest_by_output(program, output_strides);
  walk.flat = walk.nest.shape.rank == 1;
  for (const Dims& strides : walk.nest.leaves)
    walk.flat &= walk.nest.is_dense(strides) || LoopNest::is_scalar(strides);
  for (const Dims& strides : walk.nest.outputs)
    walk.flat &= walk.nest.is_dense(strides);
  walk.wide = !fits_32_bits(walk.nest);
  const LoopNest in_memory = memory_of(program, walk.nest);
  if (const auto together = find_together(in_memory)) {
    walk.nest = in_order(walk.nest, *together);
    walk.together = static_cast<int>(walk.nest.shape[walk.nest.shape.rank - 2]);
  } else if (const auto tiles = find_tiles(in_memory)) {
    walk.nest = in_order(walk.nest, *tiles);
    walk.side = side_of(program, walk.nest);
    if (walk.side > 0) walk.form = CudaWalk::Form::tiles;
  }
  for (std::size_t i = 0; i < walk.nest.leaves.size(); ++i) {
    walk.leaves.push_back(program.leaves[i].is_index() ? Way::index
                                                       : way_of(walk.nest.leaves[i], walk));
  }
  for (const Dims& strides : walk.nest.outputs) {
    const Way way = way_of(strides, walk);
    walk.outputs.push_back(way == Way::across ? Way::apart : way);
  }
  walk.pack = pack_of(program, walk);
  for (std::size_t i = 0; i < walk.leaves.size(); ++i)
    walk.held.push_back(held_values(program.leaves[i], walk, i));
  for (std::size_t i = 0; i < walk.leaves.size(); ++i) {
    const Program::Leaf& leaf = program.leaves[i];
    const std::uint64_t first = static_cast<std::uint64_t>(leaf.offset) * size_of(leaf.dtype);
    walk.loose.push_back(
        walk.leaves[i] != Way::across &&
        !allows_packs(walk, first, leaf.dtype, walk.nest.leaves[i], walk.leaves[i]));
  }
  return walk;
}

CudaWalk cuda_walk(const Program& program) {
  const std::vector<Dims> dense(program.outputs.size(), dense_strides(program.shape));
  return cuda_walk(program, dense);
}

}  // namespace forebay::expr
