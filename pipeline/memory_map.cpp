#include <forebay/pipeline/memory_map.h>

#include <algorithm>

namespace forebay {
namespace {

using Block = MemoryMap::Block;

class Arranger {
 public:
  explicit Arranger(const Plan& plan) : plan_(plan) {
    map_.places.resize(plan.values.size());
    in_batch_.resize(plan.values.size());
    for (const PlanOutput& output : plan.outputs)
      in_batch_[base(output.value)] = true;
    find_lives();
  }

  MemoryMap run() {
    const bool gpu = plan_.device.is_cuda();
    place_batch_info();
    std::size_t front = map_.ids_offset +
                        aligned(static_cast<std::size_t>(plan_.batch_size) * sizeof(std::int64_t));
    // What travels has the same offset at both ends.
    for (const PlanStep& step : plan_.steps) {
      if (step.kind != PlanStep::Kind::load) continue;
      for (std::size_t i = 0; i < step.inputs.size(); ++i) {
        place(step.inputs[i], Block::slot_host, front);
        place(step.outputs[i], Block::slot_device, front);
        front += size(step.inputs[i]);
      }
    }
    map_.travelling = gpu ? front : 0;
    map_.slot_host = front;
    map_.slot_device = gpu ? front : 0;
    for (std::size_t i = 0; i < plan_.values.size(); ++i) {
      const PlanValue& value = plan_.values[i];
      if (map_.places[i].block != Block::none || value.kind == PlanValue::Kind::view) continue;
      const int number = static_cast<int>(i);
      // Host memory beside a GPU takes part in copies that run later than the host's own work: each
      // slot has its own.
      const bool in_slot =
          in_batch_[i] || value.kind == PlanValue::Kind::column || (gpu && !value.device.is_cuda());
      if (in_slot) {
        append(number, value.device.is_cuda() ? Block::slot_device : Block::slot_host,
               value.device.is_cuda() ? map_.slot_device : map_.slot_host);
      } else {
        share(number, value.device.is_cuda() ? Block::shared_device : Block::shared_host,
              value.device.is_cuda() ? map_.shared_device : map_.shared_host);
      }
    }
    for (std::size_t i = 0; i < plan_.values.size(); ++i) {
      if (plan_.values[i].kind == PlanValue::Kind::view)
        map_.places[i] = map_.places[base(static_cast<int>(i))];
    }
    return std::move(map_);
  }

 private:
  struct Life {
    int first = 1 << 30, last = -1;  // steps
    bool meets(const Life& other) const { return first <= other.last && other.first <= last; }
  };

  std::size_t base(int value) const {
    const PlanValue& v = plan_.values[static_cast<std::size_t>(value)];
    return static_cast<std::size_t>(v.kind == PlanValue::Kind::view ? v.base : value);
  }
  std::size_t size(int value) const {
    return aligned(bytes_of(plan_.values[static_cast<std::size_t>(value)].spec));
  }
  void place(int value, Block block, std::size_t offset) {
    map_.places[static_cast<std::size_t>(value)] = {block, offset};
  }
  void place_batch_info() {
    for (std::size_t i = 0; i < plan_.values.size(); ++i) {
      const PlanValue& value = plan_.values[i];
      const Block block = value.device.is_cuda() ? Block::slot_device : Block::slot_host;
      const int number = static_cast<int>(i);
      if (value.kind == PlanValue::Kind::sample_ids) place(number, block, map_.ids_offset);
      if (value.kind == PlanValue::Kind::position) place(number, block, map_.position_offset);
    }
  }
  void append(int value, Block block, std::size_t& end) {
    place(value, block, end);
    end += size(value);
  }

  void find_lives() {
    lives_.resize(plan_.values.size());
    for (int i = 0; i < static_cast<int>(plan_.steps.size()); ++i) {
      const PlanStep& step = plan_.steps[static_cast<std::size_t>(i)];
      for (const auto* values : {&step.inputs, &step.outputs}) {
        for (const int value : *values) {
          if (value < 0) continue;
          Life& life = lives_[base(value)];
          life.first = std::min(life.first, i);
          life.last = std::max(life.last, i);
        }
      }
    }
  }

  /// The lowest place in the shared block that no value of the same time has.
  void share(int value, Block block, std::size_t& end) {
    const Life& life = lives_[static_cast<std::size_t>(value)];
    std::vector<std::pair<std::size_t, std::size_t>> taken;  // begin, end
    for (std::size_t i = 0; i < plan_.values.size(); ++i) {
      if (map_.places[i].block != block || !lives_[i].meets(life)) continue;
      taken.emplace_back(map_.places[i].offset, map_.places[i].offset + size(static_cast<int>(i)));
    }
    std::sort(taken.begin(), taken.end());
    std::size_t offset = 0;
    for (const auto& [begin, stop] : taken) {
      if (offset + size(value) <= begin) break;
      offset = std::max(offset, stop);
    }
    place(value, block, offset);
    end = std::max(end, offset + size(value));
  }

  const Plan& plan_;
  MemoryMap map_;
  std::vector<Life> lives_;
  std::vector<bool> in_batch_;
};

}  // namespace

std::size_t aligned(std::size_t bytes) {
  return (bytes + MemoryMap::kAlignment - 1) / MemoryMap::kAlignment * MemoryMap::kAlignment;
}

std::size_t bytes_of(const ArraySpec& spec) {
  return static_cast<std::size_t>(count_of(spec.shape)) * size_of(spec.dtype);
}

MemoryMap map_memory(const Plan& plan) { return Arranger(plan).run(); }

std::size_t Plan::device_bytes_per_slot() const {
  const MemoryMap map = map_memory(*this);
  return device.is_cuda() ? map.slot_device : map.slot_host;
}

std::size_t Plan::device_bytes_shared() const {
  const MemoryMap map = map_memory(*this);
  return device.is_cuda() ? map.shared_device : map.shared_host;
}

std::size_t Plan::host_bytes_per_slot() const {
  return device.is_cuda() ? map_memory(*this).slot_host : 0;
}

std::size_t Plan::copied_bytes() const {
  std::size_t bytes = 0;
  for (const PlanStep& step : steps) {
    if (step.kind != PlanStep::Kind::load) continue;
    for (const int value : step.inputs)
      bytes += bytes_of(values[static_cast<std::size_t>(value)].spec);
  }
  return bytes;
}

namespace {

/// Bytes of source number `source` that the program reads, as if no two of its leaf's
/// elements were one.
std::size_t bytes_read(const expr::Program& program, int source) {
  std::size_t most = 0;
  for (const expr::Program::Leaf& leaf : program.leaves) {
    if (leaf.source != source) continue;
    std::size_t bytes = size_of(leaf.dtype);
    for (int axis = 0; axis < program.shape.rank; ++axis) {
      if (leaf.strides[axis] != 0) bytes *= static_cast<std::size_t>(program.shape[axis]);
    }
    most = std::max(most, bytes);
  }
  return most;
}

}  // namespace

std::size_t Plan::bytes_moved(const PlanStep& step) const {
  std::size_t bytes = 0;
  for (const int value : step.outputs) {
    if (value >= 0) bytes += bytes_of(values[static_cast<std::size_t>(value)].spec);
  }
  for (int i = 0; i < static_cast<int>(step.inputs.size()); ++i) {
    const int value = step.inputs[static_cast<std::size_t>(i)];
    const std::size_t whole = bytes_of(values[static_cast<std::size_t>(value)].spec);
    std::size_t read = 0;
    if (step.kind == PlanStep::Kind::pointwise) read = bytes_read(step.program, i);
    for (std::size_t k = 0; k < step.problem.prologue.size(); ++k)
      read = std::max(read, bytes_read(step.problem.load(k), i));
    if (step.problem.epilogue.valid())
      read = std::max(read, bytes_read(step.problem.store(), 1 + i));
    bytes += read == 0 ? whole : std::min(read, whole);
  }
  return bytes;
}

int Plan::slots() const { return spec->prefetch_queue_depth + 2; }

bool Plan::has_steps_on(DeviceKind kind) const {
  return std::any_of(steps.begin(), steps.end(), [&](const PlanStep& step) {
    return step.kind != PlanStep::Kind::load && step.device.kind == kind;
  });
}

}  // namespace forebay
