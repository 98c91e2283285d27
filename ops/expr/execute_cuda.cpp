#include <algorithm>

#include <forebay/array/cuda/kernel.h>
#include <forebay/array/require.h>
#include <forebay/ops/expr/cuda_source.h>
#include <forebay/ops/expr/divisor.h>
#include <forebay/ops/expr/execute_devices.h>

namespace forebay::expr {
namespace {

// What a kernel's parameters may take on every driver.
constexpr std::size_t kMaxParameterBytes = 4096;

/// Bytes of the accesses that move packs of `elements`: kAccessBytes in expr.cu.
std::uint64_t access_bytes(int elements, Dtype dtype) {
  const std::uint64_t bytes = static_cast<std::uint64_t>(elements) * size_of(dtype);
  return bytes % 16 == 0 ? 16 : bytes & (~bytes + 1);
}

/// One kernel, for arrays that lie as in one walk.
class Launcher {
 public:
  Launcher(const Program& program, const CudaWalk& walk, Device device)
      : source_(cuda_source(program, walk)) {
    kernel_ = cuda::load_kernel({kKernelName, source_.text, {}}, device);
    FOREBAY_REQUIRE(source_.words.size() * sizeof(std::uint64_t) <= kMaxParameterBytes, unsupported,
                    "one kernel cannot read and write {} arrays; write intermediate results out.",
                    walk.leaves.size() + walk.outputs.size());
  }

  void launch(const Program& program, std::span<const ArrayView> inputs,
              std::span<const ArrayView> outputs, const Stream& stream) {
    const CudaWalk& walk = source_.walk;
    if (walk.nest.count == 0) return;
    const std::int64_t columns = walk.nest.shape[walk.nest.shape.rank - 1];
    bool packed = walk.flat || columns % walk.pack == 0, whole = true;
    for (std::size_t i = 0; i < program.leaves.size(); ++i) {
      const Program::Leaf& leaf = program.leaves[i];
      const void* data =
          leaf.source >= 0 ? inputs[static_cast<std::size_t>(leaf.source)].data : leaf.table.data();
      const auto address = reinterpret_cast<std::uintptr_t>(data) +
                           static_cast<std::uintptr_t>(leaf.offset) * size_of(leaf.dtype);
      source_.words[source_.leaf_words[i]] = address;
      (walk.leaves[i] == Way::across ? whole : packed) &=
          allows_packs(address, leaf.dtype, walk.nest.leaves[i], walk.leaves[i]);
    }
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      const auto address = reinterpret_cast<std::uintptr_t>(outputs[k].data);
      source_.words[source_.output_words[k]] = address;
      packed &= allows_packs(address, outputs[k].dtype, walk.nest.outputs[k], walk.outputs[k]);
    }
    if (walk.form == CudaWalk::Form::tiles) {
      source_.words[kPackedWord] = packed;
      source_.words[kWholeWord] = whole;
    } else {
      constexpr int kBlockItems = kKernelThreads * kItems;
      source_.blocks = (set_items(packed) + kBlockItems - 1) / kBlockItems;
    }
    kernel_->launch(stream, {static_cast<unsigned>(source_.blocks)}, {kKernelThreads}, 0,
                    {source_.words.data()});
  }

 private:
  /// Whether every pack of an array is where its accesses may be.
  bool allows_packs(std::uintptr_t address, Dtype dtype, const Dims& strides, Way way) const {
    const CudaWalk& walk = source_.walk;
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

  /// Says what there is to do; returns the number of items that threads have to share.
  std::int64_t set_items(bool packed) {
    const CudaWalk& walk = source_.walk;
    const auto set = [&](std::size_t word, std::int64_t value) {
      source_.words[word] = static_cast<std::uint64_t>(value);
    };
    std::int64_t packs = 0, first = 0, end = 0;
    if (walk.flat) {
      packs = packed ? walk.nest.count / walk.pack : 0;
      first = packs * walk.pack;
      end = walk.nest.count;
    } else {
      const std::int64_t columns = walk.nest.shape[walk.nest.shape.rank - 1];
      const std::int64_t per_row = packed ? columns / walk.pack : columns;
      (packed ? packs : end) = walk.nest.count / (columns * walk.together) * per_row;
      set(kPerRowWord, per_row);
      const Divisor by_row(per_row, walk.wide);
      source_.words[kPerRowWord + 1] = by_row.multiplier;
      source_.words[kPerRowWord + 2] = by_row.shift;
    }
    set(kPacksWord, packs);
    set(kFirstWord, first);
    set(kEndWord, end);
    return std::max(packs, end - first);
  }

  CudaSource source_;
  std::shared_ptr<const cuda::Kernel> kernel_;
};

class CudaBody final : public Body {
 public:
  CudaBody(const Program& program, Device device)
      : program_(program), device_(device), dense_(program_, cuda_walk(program_), device) {}

  void run(std::span<const ArrayView> inputs, std::span<const ArrayView> outputs,
           const Launch& launch) override {
    const bool all_dense = std::all_of(outputs.begin(), outputs.end(),
                                       [](const ArrayView& output) { return is_dense(output); });
    if (all_dense) {
      dense_.launch(program_, inputs, outputs, launch.stream);
      return;
    }
    // Outputs that lie otherwise are known only now; their kernel comes from the process's cache
    // after the first time.
    std::vector<Dims> strides;
    for (const ArrayView& output : outputs)
      strides.push_back(output.strides);
    Launcher(program_, cuda_walk(program_, strides), device_)
        .launch(program_, inputs, outputs, launch.stream);
  }

 private:
  Program program_;
  Device device_;
  Launcher dense_;
};

}  // namespace

std::unique_ptr<Body> prepare_cuda(const Program& program, const Context& context) {
  return std::make_unique<CudaBody>(program, context.device());
}

}  // namespace forebay::expr
