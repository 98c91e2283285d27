#include <algorithm>
#include <optional>

#include <forebay/array/cuda/kernel.h>
#include <forebay/array/require.h>
#include <forebay/ops/expr/cuda_source.h>
#include <forebay/ops/expr/divisor.h>
#include <forebay/ops/expr/execute_devices.h>

namespace forebay::expr {
namespace {

// What a kernel's parameters may take on every driver.
constexpr std::size_t kMaxParameterBytes = 4096;

/// One kernel, for arrays that lie as in one walk.
class Launcher {
 public:
  Launcher(const Program& program, const CudaWalk& walk, Device device)
      : source_(cuda_source(program, walk)) {
    FOREBAY_REQUIRE(source_.words.size() * sizeof(std::uint64_t) <= kMaxParameterBytes, unsupported,
                    "one kernel cannot read and write {} arrays; write intermediate results out.",
                    walk.leaves.size() + walk.outputs.size());
    kernel_ = cuda::load_kernel({kKernelName, source_.text, {}}, device);
  }

  void launch(const Program& program, std::span<const ArrayView> inputs,
              std::span<const ArrayView> outputs, const Stream& stream) {
    const CudaWalk& walk = source_.walk;
    if (walk.nest.count == 0) return;
    const std::int64_t columns = walk.nest.shape[walk.nest.shape.rank - 1];
    bool packed = walk.flat || columns % walk.pack == 0, whole = true;
    for (std::size_t i = 0; i < program.leaves.size(); ++i) {
      const Program::Leaf& leaf = program.leaves[i];
      if (!walk.held[i].empty() || walk.leaves[i] == Way::index) continue;
      const void* data =
          leaf.source >= 0 ? inputs[static_cast<std::size_t>(leaf.source)].data : leaf.table.data();
      const auto address = reinterpret_cast<std::uintptr_t>(data) +
                           static_cast<std::uintptr_t>(leaf.offset) * size_of(leaf.dtype);
      source_.words[source_.leaf_words[i]] = address;
      const bool allowed =
          allows_packs(walk, address, leaf.dtype, walk.nest.leaves[i], walk.leaves[i]);
      (walk.leaves[i] == Way::across ? whole : packed) &= allowed || walk.loose[i];
    }
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      const auto address = reinterpret_cast<std::uintptr_t>(outputs[k].data);
      source_.words[source_.output_words[k]] = address;
      packed &=
          allows_packs(walk, address, outputs[k].dtype, walk.nest.outputs[k], walk.outputs[k]);
    }
    if (walk.form == CudaWalk::Form::tiles) {
      source_.words[kPackedWord] = packed;
      source_.words[kWholeWord] = whole;
    } else {
      const std::int64_t block_items = std::int64_t{source_.threads} * source_.items;
      source_.blocks = (set_items(packed) + block_items - 1) / block_items;
    }
    kernel_->launch(stream, {static_cast<unsigned>(source_.blocks)},
                    {static_cast<unsigned>(source_.threads)}, 0, {source_.words.data()});
  }

 private:
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
  CudaBody(const Program& program, const Context& context)
      : program_(program),
        here_(on_device(program, context)),
        device_(context.device()),
        dense_(program, cuda_walk(program), device_) {}

  void run(std::span<const ArrayView> inputs, std::span<const ArrayView> outputs,
           const Launch& launch) override {
    const bool all_dense = std::all_of(outputs.begin(), outputs.end(),
                                       [](const ArrayView& output) { return is_dense(output); });
    if (all_dense) {
      dense_.launch(here_, inputs, outputs, launch.stream);
      return;
    }
    // Outputs that lie otherwise are known only now.
    std::vector<Dims> strides;
    for (const ArrayView& output : outputs)
      strides.push_back(output.strides);
    if (!strided_ || strides != strides_) {
      strided_.emplace(program_, cuda_walk(program_, strides), device_);
      strides_ = std::move(strides);
    }
    strided_->launch(here_, inputs, outputs, launch.stream);
  }

 private:
  Program program_;  // as it was given; small tables of the host's go into the kernel's parameter
  Program here_;     // with its tables on the device
  Device device_;
  Launcher dense_;
  std::optional<Launcher> strided_;  // for the outputs of the last run that were not dense
  std::vector<Dims> strides_;
};

}  // namespace

std::unique_ptr<Body> prepare_cuda(const Program& program, const Context& context) {
  return std::make_unique<CudaBody>(program, context);
}

}  // namespace forebay::expr
