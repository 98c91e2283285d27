#include <algorithm>
#include <cstring>
#include <new>

#include <forebay/ops/expr/opcodes.h>
#include <forebay/ops/expr/strided_copy.h>
#include <forebay/ops/expr/tile_engine.h>

namespace forebay::expr {
namespace {

constexpr std::size_t kTileBytes = 24
                                   << 10;  // for all buffers of a tile, out of 32 KB or more of L1
constexpr std::int64_t kMaxTile = 2048;    // elements
constexpr std::int64_t kMinTile = 128;
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
  const void* const data = leaf.source < 0 ? leaf.table.data() : source;
  return static_cast<const std::byte*>(data) +
         leaf.offset * static_cast<std::int64_t>(size_of(leaf.dtype));
}

}  // namespace

/// A thread's own: it grows to what the largest program needs, and stays.
struct TileEngine::Workspace {
  Buffer memory;
  std::size_t bytes = 0;
  std::vector<const std::byte*> values;  // of each instruction
};

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

TileEngine::TileEngine(const Program& program) : program_(program), steps_(program.code.size()) {
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
    const int operands = info(instruction.opcode).operands;
    if (operands == 0) continue;
    const int last = instruction.args[operands - 1];
    steps_[i].loop = cpu_loop(
        instruction.opcode, program_.code[static_cast<std::size_t>(last)].dtype, instruction.dtype);
  }
}

/// A buffer is free again after the last use of its value; an output's is kept to the end.
void TileEngine::place_buffers() {
  const std::size_t count = steps_.size();
  std::vector<std::size_t> last_use(count, 0);
  for (std::size_t i = 0; i < count; ++i) {
    for (int arg : program_.code[i].args) {
      if (arg >= 0) last_use[static_cast<std::size_t>(arg)] = i;
    }
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
    if (instruction.opcode == Opcode::constant) continue;
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

  tile_ = std::clamp(
      static_cast<std::int64_t>(kTileBytes / std::max<std::size_t>(element_bytes, 1)) / 64 * 64,
      kMinTile, kMaxTile);
  std::vector<std::size_t> starts;
  for (const Slot& slot : slots) {
    starts.push_back(tile_memory_);
    tile_memory_ += slot.size * static_cast<std::size_t>(tile_);
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (program_.code[i].opcode != Opcode::constant) steps_[i].buffer = starts[slot_of[i]];
  }
}

void TileEngine::fill_constants() {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    if (program_.code[i].opcode != Opcode::constant) continue;
    steps_[i].buffer = bytes;
    bytes += size_of(program_.code[i].dtype) * static_cast<std::size_t>(tile_);
  }
  constants_ = buffer_of(bytes);
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const Program::Instruction& instruction = program_.code[i];
    if (instruction.opcode == Opcode::constant) {
      fill_constant(constants_.get() + steps_[i].buffer, instruction.value, instruction.dtype,
                    tile_);
    }
  }
}

void TileEngine::run(const LoopNest& nest, std::span<const std::byte* const> leaves,
                     std::span<std::byte* const> outputs, std::int64_t begin,
                     std::int64_t n) const {
  Workspace& work = workspace();
  if (work.bytes < tile_memory_) {
    work.memory = buffer_of(tile_memory_);
    work.bytes = tile_memory_;
  }
  work.values.resize(std::max(work.values.size(), steps_.size()));
  for (const std::int64_t end = begin + n; begin < end; begin += tile_)
    run_tile(nest, leaves, outputs, begin, std::min(tile_, end - begin), work);
}

void TileEngine::run_tile(const LoopNest& nest, std::span<const std::byte* const> leaves,
                          std::span<std::byte* const> outputs, std::int64_t begin, std::int64_t n,
                          Workspace& work) const {
  std::vector<const std::byte*>& values = work.values;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const Program::Instruction& instruction = program_.code[i];
    const auto size = static_cast<std::int64_t>(size_of(instruction.dtype));
    if (instruction.opcode == Opcode::constant) {
      values[i] = constants_.get() + steps_[i].buffer;
      continue;
    }
    if (instruction.opcode == Opcode::leaf) {
      const auto leaf = static_cast<std::size_t>(instruction.leaf);
      if (nest.is_dense(nest.leaves[leaf])) {
        values[i] = leaves[leaf] + begin * size;
        continue;
      }
    }
    std::byte* target = dense_output(nest, outputs, static_cast<int>(i), begin * size);
    if (target == nullptr) target = work.memory.get() + steps_[i].buffer;
    if (instruction.opcode == Opcode::leaf) {
      const auto leaf = static_cast<std::size_t>(instruction.leaf);
      gather({leaves[leaf], nest.shape, nest.leaves[leaf], size}, begin, n, target);
    } else {
      const auto arg = [&](int k) -> const void* {
        return instruction.args[k] < 0 ? nullptr
                                       : values[static_cast<std::size_t>(instruction.args[k])];
      };
      steps_[i].loop(target, arg(0), arg(1), arg(2), n);
    }
    values[i] = target;
  }
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    if (outputs[k] == nullptr) continue;
    const auto number = static_cast<std::size_t>(program_.outputs[k]);
    const auto size = static_cast<std::int64_t>(size_of(program_.code[number].dtype));
    if (!nest.is_dense(nest.outputs[k])) {
      scatter(values[number], {outputs[k], nest.shape, nest.outputs[k], size}, begin, n);
    } else if (values[number] != outputs[k] + begin * size) {
      std::memcpy(outputs[k] + begin * size, values[number], static_cast<std::size_t>(n * size));
    }
  }
}

/// Where instruction `number` may write straight into an output's memory; null when it may not.
std::byte* TileEngine::dense_output(const LoopNest& nest, std::span<std::byte* const> outputs,
                                    int number, std::int64_t offset) const {
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    if (program_.outputs[k] == number && outputs[k] != nullptr && nest.is_dense(nest.outputs[k])) {
      return outputs[k] + offset;
    }
  }
  return nullptr;
}

CpuLoop* cpu_loop(Opcode opcode, Dtype operand, Dtype result) {
  if (CpuLoop* loop = cpu_cast_loop(opcode, operand, result)) return loop;
  for (auto* find : {cpu_compare_loop, cpu_arithmetic_loop, cpu_math_loop, cpu_complex_loop}) {
    if (CpuLoop* loop = find(opcode, operand)) return loop;
  }
  return nullptr;
}

}  // namespace forebay::expr
