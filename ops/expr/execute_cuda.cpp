#include <algorithm>

#include <forebay/array/cuda/kernel.h>
#include <forebay/array/require.h>
#include <forebay/ops/expr/cuda_source.h>
#include <forebay/ops/expr/execute_devices.h>

namespace forebay::expr {
namespace {

// What a kernel's parameters may take on every driver.
constexpr std::size_t kMaxParameterBytes = 4096;

/// One kernel, for arrays that lie as in one loop nest.
class Launcher {
 public:
  Launcher(const Program& program, LoopNest nest, Device device) : nest_(std::move(nest)) {
    CudaSource source = cuda_source(program, nest_);
    flat_ = source.flat;
    pack_ = source.pack;
    std::vector<std::string> options;
    if (!flat_)
      options.push_back(fits_32_bits(nest_) ? "-DFOREBAY_INDEX=i32" : "-DFOREBAY_INDEX=i64");
    kernel_ = cuda::load_kernel({kKernelName, std::move(source.text), std::move(options)}, device);
    most_blocks_ = kernel_->resident_blocks(kKernelThreads, 0);
    words_.reserve(word_count());
    FOREBAY_REQUIRE(word_count() * sizeof(std::uint64_t) <= kMaxParameterBytes, unsupported,
                    "one kernel cannot read and write {} arrays; write intermediate results out.",
                    nest_.leaves.size() + nest_.outputs.size());
  }

  void launch(const Program& program, std::span<const ArrayView> inputs,
              std::span<const ArrayView> outputs, const Stream& stream) {
    if (nest_.count == 0) return;
    words_.assign({static_cast<std::uint64_t>(nest_.count), 1});
    if (!flat_) push(nest_.shape);
    bool aligned = true;
    const auto push_array = [&](const void* data, std::int64_t offset, Dtype dtype,
                                const Dims& strides) {
      const auto size = static_cast<std::int64_t>(size_of(dtype));
      const auto address =
          reinterpret_cast<std::uintptr_t>(data) + static_cast<std::uintptr_t>(offset * size);
      words_.push_back(address);
      if (nest_.is_dense(strides)) {
        aligned &= address % static_cast<std::uintptr_t>(size * pack_) == 0;
      } else if (!LoopNest::is_scalar(strides)) {
        push(strides);
      }
    };
    for (std::size_t i = 0; i < program.leaves.size(); ++i) {
      const Program::Leaf& leaf = program.leaves[i];
      const void* data =
          leaf.source >= 0 ? inputs[static_cast<std::size_t>(leaf.source)].data : leaf.table.data();
      push_array(data, leaf.offset, leaf.dtype, nest_.leaves[i]);
    }
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      push_array(outputs[k].data, 0, outputs[k].dtype, nest_.outputs[k]);
    }
    words_[1] = aligned;
    const std::int64_t items = aligned && flat_ ? (nest_.count + pack_ - 1) / pack_ : nest_.count;
    const std::int64_t blocks =
        std::min<std::int64_t>((items + kKernelThreads - 1) / kKernelThreads, most_blocks_);
    kernel_->launch(stream, {static_cast<unsigned>(blocks)}, {kKernelThreads}, 0, {words_.data()});
  }

 private:
  std::size_t word_count() const {
    const auto rank = static_cast<std::size_t>(nest_.shape.rank);
    return 2 + rank + (nest_.leaves.size() + nest_.outputs.size()) * (1 + rank);
  }
  void push(const Dims& dims) {
    for (std::int64_t value : dims)
      words_.push_back(static_cast<std::uint64_t>(value));
  }

  LoopNest nest_;
  bool flat_ = true;
  int pack_ = 1;
  int most_blocks_ = 1;
  std::shared_ptr<const cuda::Kernel> kernel_;
  std::vector<std::uint64_t> words_;  // the parameters; kept, so that a launch allocates nothing
};

class CudaBody final : public Body {
 public:
  CudaBody(const Program& program, Device device)
      : program_(program), device_(device), dense_(program_, loop_nest(program_), device) {}

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
    Launcher(program_, loop_nest(program_, strides), device_)
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
