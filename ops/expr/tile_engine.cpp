#include <algorithm>
#include <cstring>
#include <new>

#include <forebay/array/past_cache.h>
#include <forebay/ops/expr/opcodes.h>
#include <forebay/ops/expr/strided_copy.h>
#include <forebay/ops/expr/tile_engine.h>
#include <forebay/ops/expr/tile_parts.h>

namespace forebay::expr {
namespace {

constexpr std::size_t kTileBytes = 24
                                   << 10;  // for all buffers of a tile, out of 32 KB or more of L1
constexpr std::size_t kStagger = 5 * 64;   // bytes between buffers: not all at one place of a page
constexpr std::align_val_t kAlignment{64};

using AllTypes = Types<Bool, std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t, std::int8_t,
                       std::int16_t, std::int32_t, std::int64_t, Half, BFloat16, float, double,
                       std::complex<float>, std::complex<double>>;

void fill_constant(std::byte* data, const Number& value, Dtype dtype, std::int64_t count) {
  dispatch(AllTypes{}, dtype, "constant", "value", [&]<class T>(Type<T>) {
    std::fill_n(reinterpret_cast<T*>(data), count, from_number<T>(value));
  });
}

const std::byte* address_of(const Program::Leaf& leaf, const void* source) {
  if (leaf.is_index()) return nullptr;
  const void* const data = leaf.source < 0 ? leaf.table.data() : source;
  return static_cast<const std::byte*>(data) +
         leaf.offset * static_cast<std::int64_t>(size_of(leaf.dtype));
}

}  // namespace

void TileEngine::Free::operator()(std::byte* memory) const {
  ::operator delete(memory, kAlignment);
}

TileEngine::Buffer TileEngine::buffer_of(std::size_t bytes) {
  return Buffer(
      static_cast<std::byte*>(::operator new(std::max<std::size_t>(bytes, 1), kAlignment)));
}

TileEngine::Workspace& TileEngine::workspace() {
  thread_local Workspace work;
  return work;
}

TileEngine::TileEngine(const Program& program, const CpuLevel& level)
    : level_(&level), program_(program), steps_(program.code.size()) {
  choose_loops();
  place_buffers();
  fill_constants();
}

void TileEngine::leaf_addresses(std::span<const ArrayView> sources,
                                std::vector<const std::byte*>& addresses) const {
  for (const Program::Leaf& leaf : program_.leaves) {
    addresses.push_back(address_of(
        leaf, leaf.source < 0 ? nullptr : sources[static_cast<std::size_t>(leaf.source)].data));
  }
}

void TileEngine::leaf_addresses(std::span<const ArrayView> sources,
                                std::vector<const std::byte*>& addresses,
                                const void* result) const {
  for (const Program::Leaf& leaf : program_.leaves) {
    const void* const source =
        leaf.source <= 0 ? result : sources[static_cast<std::size_t>(leaf.source) - 1].data;
    addresses.push_back(address_of(leaf, source));
  }
}

void TileEngine::choose_loops() {
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const Program::Instruction& instruction = program_.code[i];
    Step& step = steps_[i];
    step.size = static_cast<std::int64_t>(size_of(instruction.dtype));
    step.operands = info(instruction.opcode).operands;
    if (step.operands == 0) continue;
    std::copy_n(std::begin(instruction.args), step.operands, step.args.begin());
    const int last = step.args[static_cast<std::size_t>(step.operands) - 1];
    step.loop = level_->loop(
        instruction.opcode, program_.code[static_cast<std::size_t>(last)].dtype, instruction.dtype);
  }
  join_pairs();
  loops_ = std::count_if(steps_.begin(), steps_.end(),
                         [](const Step& step) { return step.loop != nullptr; });
}

/// An instruction whose value only the first operand of another one reads becomes part of it, where
/// there is a loop for both: one pass over the tile less.
void TileEngine::join_pairs() {
  std::vector<int> uses(steps_.size(), 0);
  for (const Step& step : steps_) {
    for (int k = 0; k < step.operands; ++k)
      ++uses[static_cast<std::size_t>(step.args[static_cast<std::size_t>(k)])];
  }
  for (int output : program_.outputs)
    ++uses[static_cast<std::size_t>(output)];
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    Step& second = steps_[i];
    if (second.operands != 2) continue;
    const auto before = static_cast<std::size_t>(second.args[0]);
    Step& first = steps_[before];
    if (first.loop == nullptr || first.operands != 2 || uses[before] != 1) continue;
    CpuLoop* const both = level_->loop_of_two(program_.code[before].opcode, program_.code[i].opcode,
                                              program_.code[i].dtype);
    if (both == nullptr) continue;
    second = {.loop = both,
              .operands = 3,
              .args = {first.args[0], first.args[1], second.args[1]},
              .size = second.size};
    first.loop = nullptr;
    first.operands = 0;
  }
}

/// A buffer is free again after the last use of its value; an output's is kept to the end.
void TileEngine::place_buffers() {
  const std::size_t count = steps_.size();
  std::vector<std::size_t> last_use(count, 0);
  for (std::size_t i = 0; i < count; ++i) {
    for (int k = 0; k < steps_[i].operands; ++k)
      last_use[static_cast<std::size_t>(steps_[i].args[static_cast<std::size_t>(k)])] = i;
  }
  for (int output : program_.outputs)
    last_use[static_cast<std::size_t>(output)] = count;

  struct Slot {
    std::size_t size;  // of an element
    std::size_t free_after;
  };
  std::vector<Slot> slots;
  std::vector<std::size_t> slot_of(count, 0);
  std::size_t element_bytes = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Program::Instruction& instruction = program_.code[i];
    if (!has_buffer(i)) continue;
    const std::size_t size = size_of(instruction.dtype);
    auto slot = std::find_if(slots.begin(), slots.end(),
                             [&](const Slot& s) { return s.size == size && s.free_after < i; });
    if (slot == slots.end()) {
      slots.push_back({size, 0});
      slot = slots.end() - 1;
      element_bytes += size;
    }
    slot->free_after = std::max(last_use[i], i);
    slot_of[i] = static_cast<std::size_t>(slot - slots.begin());
  }

  capacity_ = std::clamp(
      static_cast<std::int64_t>(kTileBytes / std::max<std::size_t>(element_bytes, 1)) / 64 * 64,
      kMinTile, kMaxTile);
  std::vector<std::size_t> starts;
  for (const Slot& slot : slots) {
    starts.push_back(tile_memory_);
    tile_memory_ += slot.size * static_cast<std::size_t>(capacity_) + kStagger;
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (has_buffer(i)) steps_[i].buffer = starts[slot_of[i]];
  }
}

bool TileEngine::has_buffer(std::size_t i) const {
  return steps_[i].loop != nullptr || program_.code[i].opcode == Opcode::leaf;
}

void TileEngine::fill_constants() {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    if (program_.code[i].opcode != Opcode::constant) continue;
    steps_[i].buffer = bytes;
    bytes += size_of(program_.code[i].dtype) * static_cast<std::size_t>(kChunk);
  }
  constants_ = buffer_of(bytes);
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const Program::Instruction& instruction = program_.code[i];
    if (instruction.opcode == Opcode::constant) {
      fill_constant(constants_.get() + steps_[i].buffer, instruction.value, instruction.dtype,
                    kChunk);
    }
  }
}

void TileEngine::prepare(Workspace& work) const {
  if (work.bytes < tile_memory_) {
    work.memory = buffer_of(tile_memory_);
    work.bytes = tile_memory_;
  }
  if (work.values.size() < steps_.size()) work.values.resize(steps_.size());
}

void TileEngine::run(const Traversal& traversal, std::span<const std::byte* const> leaves,
                     std::span<std::byte* const> outputs, std::int64_t begin,
                     std::int64_t n) const {
  if (n <= 0) return;
  Workspace& work = workspace();
  prepare(work);
  if (traversal.room > 0) expand_periodic(traversal, leaves, work);
  const std::int64_t end = begin + n;
  const bool looks_up = traversal.looked_up >= 0;
  if (!traversal.by_rows) {
    if (looks_up && n >= Traversal::kMinLookedUp) {
      look_up_row({traversal, leaves, outputs, begin, 0, n, 0, nullptr, nullptr}, work);
      return;
    }
    for (; begin < end; begin += traversal.tile) {
      run_tile({traversal, leaves, outputs, begin, 0, std::min(traversal.tile, end - begin), 0,
                nullptr, nullptr},
               work);
    }
    return;
  }
  const LoopNest& nest = traversal.nest;
  const std::int64_t length = nest.shape[nest.shape.rank - 1];
  // Pieces of a row of about one size: the last one would be short.
  const std::int64_t pieces = (length - 1) / traversal.tile + 1;
  const std::int64_t piece = ((length - 1) / pieces / 64 + 1) * 64;
  work.offsets.resize(leaves.size() + outputs.size());
  while (begin < end) {
    std::int64_t column = begin % length;
    place_row(nest, begin / length, work.offsets);
    const std::int64_t rest = std::min(length - column, end - begin);
    if (looks_up && rest >= Traversal::kMinLookedUp) {
      look_up_row({traversal, leaves, outputs, begin, column, rest, 0, work.offsets.data(),
                   work.offsets.data() + leaves.size()},
                  work);
      begin += rest;
      continue;
    }
    for (; column < length && begin < end;) {
      const std::int64_t count = std::min({piece - column % piece, length - column, end - begin});
      run_tile({traversal, leaves, outputs, begin, column, count, 0, work.offsets.data(),
                work.offsets.data() + leaves.size()},
               work);
      column += count;
      begin += count;
    }
  }
}

/// A period and a tile of it, so that a tile may begin anywhere in the period.
void TileEngine::expand_periodic(const Traversal& traversal,
                                 std::span<const std::byte* const> leaves, Workspace& work) const {
  if (work.expanded_bytes < traversal.room) {
    work.expanded = buffer_of(traversal.room);
    work.expanded_bytes = traversal.room;
  }
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    const Traversal::Array& leaf = traversal.leaves[i];
    if (leaf.access != Traversal::Access::periodic) continue;
    std::byte* const to = work.expanded.get() + leaf.room;
    const std::int64_t bytes = (leaf.period + traversal.tile) * leaf.size;
    std::int64_t done = leaf.period * leaf.size;
    std::memcpy(to, leaves[i], static_cast<std::size_t>(done));
    for (; done < bytes; done *= 2)
      std::memcpy(to + done, to, static_cast<std::size_t>(std::min(done, bytes - done)));
  }
}

void TileEngine::run_tile(const Tile& tile, Workspace& work) const {
  compute(tile, work);
  for (std::size_t k = 0; k < tile.outputs.size(); ++k) {
    if (tile.outputs[k] != nullptr)
      write_output(tile, k, work.values[static_cast<std::size_t>(program_.outputs[k])]);
  }
}

/// The value of every instruction; those of outputs may be in their place already.
void TileEngine::compute(const Tile& tile, Workspace& work) const {
  Operand* const values = work.values.data();
  Ahead ahead;
  for (std::size_t leaf = 0; leaf < tile.leaves.size(); ++leaf) {
    if (program_.leaves[leaf].is_index() || tile.values != nullptr) continue;
    const std::int64_t step = step_in_tile(tile, leaf);
    if (step > 0)
      ahead.add(first_of(tile, leaf), tile.n * step * tile.traversal.leaves[leaf].size, loops_);
  }
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const Program::Instruction& instruction = program_.code[i];
    const Step& step = steps_[i];
    if (instruction.opcode == Opcode::constant) {
      values[i] = {constants_.get() + step.buffer, true};
      continue;
    }
    if (instruction.opcode == Opcode::leaf) {
      values[i] = leaf_value(tile, static_cast<std::size_t>(instruction.leaf),
                             work.memory.get() + step.buffer, work);
      continue;
    }
    if (step.loop == nullptr) continue;
    Operand operands[3];
    bool uniform = true;
    for (int k = 0; k < step.operands; ++k) {
      operands[k] = values[static_cast<std::size_t>(step.args[static_cast<std::size_t>(k)])];
      uniform &= operands[k].uniform;
    }
    std::byte* target = uniform ? nullptr : target_in_output(tile, static_cast<int>(i));
    if (target == nullptr) target = work.memory.get() + step.buffer;
    ahead.ask();
    step.loop(target, operands, uniform ? std::min(kChunk, tile.n) : tile.n);
    values[i] = {target, uniform};
  }
}

Operand TileEngine::leaf_value(const Tile& tile, std::size_t leaf, std::byte* buffer,
                               const Workspace& work) const {
  if (program_.leaves[leaf].is_index())
    return index_value(tile, leaf, reinterpret_cast<std::uint64_t*>(buffer));
  const Traversal& how = tile.traversal;
  const Traversal::Array& array = how.leaves[leaf];
  const auto size = static_cast<std::size_t>(array.size);
  const Dims& strides = how.nest.leaves[leaf];
  if (tile.rows > 0 && !LoopNest::is_scalar(strides)) {
    read_block(tile, leaf, buffer);
    return {buffer, false};
  }
  if (tile.values != nullptr && how.looked_up == static_cast<int>(leaf))
    return {tile.values, false};
  const std::byte* const data = first_of(tile, leaf);
  if (tile.rows > 0 || array.access == Traversal::Access::uniform) {
    level_->gather(size)(buffer, data, 0, std::min(kChunk, tile.n));
    return {buffer, true};
  }
  switch (array.access) {
    case Traversal::Access::direct:
      return {data, false};
    case Traversal::Access::periodic:
      return {work.expanded.get() + array.room + tile.begin % array.period * array.size, false};
    default:
      break;
  }
  if (how.by_rows) {
    level_->gather(size)(buffer, data, strides[strides.rank - 1], tile.n);
  } else {
    gather({data, how.nest.shape, strides, array.size}, tile.begin, tile.n, buffer);
  }
  return {buffer, false};
}

/// Where instruction `number` may write straight into an output's memory; null when it may not.
std::byte* TileEngine::target_in_output(const Tile& tile, int number) const {
  const Traversal& how = tile.traversal;
  if (how.past_cache || tile.rows > 0 || tile.values != nullptr) return nullptr;
  for (std::size_t k = 0; k < tile.outputs.size(); ++k) {
    if (program_.outputs[k] == number && tile.outputs[k] != nullptr &&
        how.outputs[k].access == Traversal::Access::direct) {
      return first_of_output(tile, k);
    }
  }
  return nullptr;
}

void TileEngine::write_output(const Tile& tile, std::size_t k, const Operand& value) const {
  const Traversal& how = tile.traversal;
  if (tile.rows > 0) return write_block(tile, k, value);
  const Traversal::Array& array = how.outputs[k];
  const Dims& strides = how.nest.outputs[k];
  // Chunk by chunk what is the same everywhere.
  const std::int64_t most = value.uniform ? kChunk : tile.n;
  const auto* const from = static_cast<const std::byte*>(value.data);
  for (std::int64_t done = 0; done < tile.n; done += most) {
    const std::int64_t n = std::min(most, tile.n - done);
    if (array.access == Traversal::Access::direct) {
      std::byte* const to = first_of_output(tile, k) + done * array.size;
      if (to == from) continue;
      const auto bytes = static_cast<std::size_t>(n * array.size);
      how.past_cache ? copy_past_cache(to, from, bytes) : (void)std::memcpy(to, from, bytes);
    } else if (how.by_rows) {
      const std::int64_t stride = strides[strides.rank - 1];
      const std::int64_t first = tile.output_rows[k] + (tile.column + done) * stride;
      level_->scatter(static_cast<std::size_t>(array.size))(tile.outputs[k] + first * array.size,
                                                            from, stride, n);
    } else {
      scatter(from, {tile.outputs[k], how.nest.shape, strides, array.size}, tile.begin + done, n);
    }
  }
}

}  // namespace forebay::expr
