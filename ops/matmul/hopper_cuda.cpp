#include <cuda.h>  // types only: libcuda is not linked

#include <forebay/array/cuda/check.h>
#include <forebay/array/cuda/device.h>
#include <forebay/array/require.h>
#include <forebay/ops/matmul/hopper.h>

namespace forebay {
namespace embedded {
extern const char* const matmul_hopper_cu;
extern const char* const matmul_pack_cu;
}  // namespace embedded
namespace hopper {
namespace {

/// x as [rows, columns] of elements of `bytes` bytes, copied in boxes of 64 rows by 32 columns.
CUtensorMap tensor_map(const void* x, std::int64_t rows, std::int64_t columns, std::size_t bytes) {
  static const auto encode = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(
      cuda::driver_function("cuTensorMapEncodeTiled"));
  const CUtensorMapDataType type = bytes == 4   ? CU_TENSOR_MAP_DATA_TYPE_UINT32
                                   : bytes == 2 ? CU_TENSOR_MAP_DATA_TYPE_UINT16
                                                : CU_TENSOR_MAP_DATA_TYPE_UINT8;
  const cuuint64_t extents[] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows)};
  const cuuint64_t pitch = static_cast<cuuint64_t>(columns) * bytes;
  const cuuint32_t box[] = {32, 64}, steps[] = {1, 1};
  CUtensorMap map;
  const CUresult status =
      encode(&map, type, 2, const_cast<void*>(x), extents, &pitch, box, steps,
             CU_TENSOR_MAP_INTERLEAVE_NONE,
             bytes == 4 ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_NONE,
             CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  cuda::check(static_cast<cudaError_t>(status), "cuTensorMapEncodeTiled");
  return map;
}

class HopperBody final : public Body {
 public:
  HopperBody(const Product& product, const Matmul& settings, const Context& context,
             const expr::Program& x, std::vector<Clip> clips, std::size_t staged)
      : product_(product),
        x_(expr::device_load("X", x, context)),
        clips_(std::move(clips)),
        leaf_(x_.program.leaves[staged]),
        plan_(plan(product, size_of(leaf_.dtype))),
        device_(context.device()),
        kernel_(cuda::load_kernel(product_kernel(plan_, x_, clips_, staged), device_)),
        packed_(pack(settings, context)) {}

  void run(std::span<const ArrayView> inputs, std::span<const ArrayView> outputs,
           const Launch& launch) override {
    const auto* const x =
        static_cast<const char*>(inputs[static_cast<std::size_t>(leaf_.source)].data) +
        leaf_.offset * static_cast<std::int64_t>(size_of(leaf_.dtype));
    void* const out = outputs[0].data;
    const cuda::DeviceGuard guard(device_.index);  // making a map needs a context
    const bool aligned = is_aligned(x) && is_aligned(out);
    if (!aligned && unaligned_ == nullptr)
      unaligned_ = cuda::load_kernel(product_kernel(plan_, x_, clips_, std::nullopt), device_);
    const cuda::Kernel& kernel = aligned ? *kernel_ : *unaligned_;
    const CUtensorMap map =
        aligned ? tensor_map(x, product_.m, product_.k, size_of(leaf_.dtype)) : CUtensorMap{};
    const void* const packed = packed_.data();
    const auto rows = static_cast<std::uint32_t>(product_.m),
               columns = static_cast<std::uint32_t>(product_.n),
               inner = static_cast<std::uint32_t>(product_.k);
    const std::int64_t pairs = (product_.m + 127) / 128 * (plan_.tiles / 2);
    const std::int64_t resident = kernel.resident_blocks(kThreads, plan_.shared_bytes()) / 2;
    kernel.launch(launch.stream, {static_cast<unsigned>(2 * std::min(pairs, resident))}, {kThreads},
                  plan_.shared_bytes(),
                  {&map, x_.parameter(inputs).data(), &packed, &out, &rows, &columns, &inner});
  }

 private:
  static constexpr unsigned kThreads = 384;
  static bool is_aligned(const void* data) {
    return reinterpret_cast<std::uintptr_t>(data) % 16 == 0;
  }

  Array pack(const Matmul& settings, const Context& context) const {
    const Product& p = product_;
    const Array other = made_constant(settings.other.array, p.operand, p.operand, context);
    Array packed = Array::empty({plan_.tiles * plan_.columns * p.k}, p.operand, context);
    const void* const from = other.data();
    void* const to = packed.data();
    const std::int64_t k_stride = p.transposed ? 1 : p.n, n_stride = p.transposed ? p.k : 1;
    const auto kernel = cuda::load_kernel(pack_kernel(plan_), device_);
    if (!context.device().is_cuda()) return packed;  // only a plan's text is looked at
    kernel->launch(context.stream, {1024}, {256}, 0,
                   {&from, &to, &p.k, &p.n, &k_stride, &n_stride, &plan_.tiles});
    context.stream.synchronize();  // runs may come on other streams
    return packed;
  }

  Product product_;
  expr::DeviceCode x_;
  std::vector<Clip> clips_;
  expr::Program::Leaf leaf_;  ///< of x_, what is copied
  Plan plan_;
  Device device_;
  std::shared_ptr<const cuda::Kernel> kernel_, unaligned_;  ///< the second at first need
  Array packed_;
};

}  // namespace

cuda::KernelSource product_kernel(const Plan& plan, const expr::DeviceCode& x,
                                  const std::vector<Clip>& clips,
                                  std::optional<std::size_t> staged) {
  std::string text = expr::kPackText + x.text;
  text += fmt::format(
      "\nusing Operand = {};\nusing Stored = {};\nconstexpr bool kTf32 = {};\n"
      "constexpr u32 kColumns = {}, kRingX = {}, kRingOther = {};\n",
      name_of(plan.operand), name_of(plan.stored), plan.operand == Dtype::f32, plan.columns,
      plan.ring_x, plan.ring_other);
  if (staged.has_value()) text += fmt::format("#define STAGED x{}\n", *staged);
  return {
      "matmul_hopper",
      text + clipped_text(clips, plan.operand) + multiply_text(plan) + embedded::matmul_hopper_cu,
      {}};
}

cuda::KernelSource pack_kernel(const Plan& plan) {
  return {"matmul_pack",
          embedded::matmul_pack_cu,
          {fmt::format("-DOPERAND={}", name_of(plan.operand)),
           fmt::format("-DCOLUMNS={}", plan.columns),
           fmt::format("-DTOGETHER={}", 16 / size_of(plan.stored))}};
}

std::unique_ptr<Body> prepare(const Product& product, const Matmul& settings,
                              const Problem& problem, const Context& context) {
  expr::Program x = problem.load(0);
  const auto staged = staged_leaf(product, x);
  if (!staged.has_value()) return nullptr;
  std::vector<Clip> clips = take_clips(x, product.operand);
  return std::make_unique<HopperBody>(product, settings, context, x, std::move(clips), *staged);
}

}  // namespace hopper
}  // namespace forebay
