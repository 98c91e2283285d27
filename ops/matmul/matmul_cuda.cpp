#include <algorithm>
#include <map>
#include <memory>

#include <forebay/array/cuda/device.h>
#include <forebay/array/cuda/kernel.h>
#include <forebay/array/require.h>
#include <forebay/ops/matmul/gemm.h>
#include <forebay/ops/matmul/hopper.h>
#include <forebay/ops/matmul/product.h>

namespace forebay {
namespace embedded {
extern const char* const matmul_cu;
}
namespace {

class FloatBody final : public ProductBody {
  using Alignments = Gemm::Alignments;

 public:
  FloatBody(const Product& product, const Matmul& settings, const Problem& problem,
            const Context& context)
      : ProductBody(product, settings, problem, context), device_(context.device().index) {
    // The axis with the most products is walked by the library, the others by calls.
    const Dims& batch = product_.batch;
    for (int axis = 1; axis < batch.rank; ++axis) {
      if (batch[axis] > batch[axis_]) axis_ = axis;
    }
    if (batch.rank > 0) {
      count_ = batch[axis_];
      x_stride_ = product_.x_strides[axis_];
      other_stride_ = product_.other_strides[axis_];
      for (int inner = axis_ + 1; inner < batch.rank; ++inner)
        products_per_step_ *= batch[inner];
      calls_ = count_of(batch) / count_;
    }
    if (product_.sum == Dtype::f64 || product_.sum == Dtype::c128)
      one_.wide[0] = 1;
    else
      one_.narrow[0] = 1;
  }

 private:
  /// Also the place where the device is first needed: with aligned memory, all that `run` uses is
  /// made here.
  std::size_t work_bytes() const override {
    const Alignments aligned = alignments(nullptr, nullptr, nullptr);
    for (std::int64_t first = 0; first < count_; first += kMostProducts)
      gemm(std::min(kMostProducts, count_ - first), aligned, /*may_measure=*/true);
    return Gemm::kWorkspace;
  }

  void multiply(const void* x, const void* other, void* out, void* scratch,
                const Launch& launch) override {
    const cuda::DeviceGuard guard(device_);
    const Product& p = product_;
    const Alignments aligned = alignments(x, other, out);
    const auto at = [](const void* data, std::int64_t elements, Dtype dtype) {
      return static_cast<const char*>(data) + elements * static_cast<std::int64_t>(size_of(dtype));
    };
    for (std::int64_t call = 0; call < calls_; ++call) {
      // Product numbers of this call: first + i * products_per_step_.
      const std::int64_t outer = call / products_per_step_, inner = call % products_per_step_;
      for (std::int64_t i = 0; i < count_; i += kMostProducts) {
        const std::int64_t b = (outer * count_ + i) * products_per_step_ + inner;
        gemm(std::min(kMostProducts, count_ - i), aligned, /*may_measure=*/false)
            .run(at(x, p.x_offset(b), p.operand), at(other, p.other_offset(b), p.operand),
                 const_cast<char*>(at(out, b * p.m * p.n, dtypes_.given)), &one_, &zero_, scratch,
                 launch.stream);
      }
    }
  }

  /// The greatest power of two, up to 256, that divides the address of every matrix.
  Alignments alignments(const void* x, const void* other, const void* out) const {
    const Product& p = product_;
    const auto divisor = [](const void* data, std::int64_t steps, Dtype dtype) {
      const auto bits = reinterpret_cast<std::uintptr_t>(data) |
                        static_cast<std::uintptr_t>(steps) * size_of(dtype) | 256;
      return static_cast<std::uint32_t>(bits & -bits);
    };
    std::int64_t x_steps = 0, other_steps = 0;
    for (int axis = 0; axis < p.batch.rank; ++axis) {
      x_steps |= p.x_strides[axis];
      other_steps |= p.other_strides[axis];
    }
    const std::int64_t out_steps = p.batch.rank > 0 ? p.m * p.n : 0;
    return {divisor(x, x_steps, p.operand), divisor(other, other_steps, p.operand),
            divisor(out, out_steps, dtypes_.given)};
  }

  const Gemm& gemm(std::int64_t count, const Alignments& aligned, bool may_measure) const {
    auto& gemm = gemms_[{count, aligned}];
    if (gemm == nullptr) {
      gemm = std::make_unique<Gemm>(product_, dtypes_.given, count, x_stride_, other_stride_,
                                    products_per_step_ * product_.m * product_.n, aligned, device_,
                                    may_measure);
    }
    return *gemm;
  }

  /// A grid's third axis has no more blocks than this.
  static constexpr std::int64_t kMostProducts = 65535;
  /// Factors in the type of the sum, complex ones included.
  union Factor {
    float narrow[2];
    double wide[2];
  };

  int device_;
  int axis_ = 0;  ///< of the batch
  std::int64_t count_ = 1, calls_ = 1, products_per_step_ = 1;
  std::int64_t x_stride_ = 0, other_stride_ = 0;
  Factor one_{.wide = {0, 0}}, zero_{.wide = {0, 0}};
  mutable std::map<std::pair<std::int64_t, Alignments>, std::unique_ptr<Gemm>> gemms_;
};

Dtype unsigned_of(Dtype dtype) {
  switch (size_of(dtype)) {
    case 1:
      return Dtype::u8;
    case 2:
      return Dtype::u16;
    case 4:
      return Dtype::u32;
    default:
      return Dtype::u64;
  }
}

class IntegerBody final : public ProductBody {
 public:
  IntegerBody(const Product& product, const Matmul& settings, const Problem& problem,
              const Context& context)
      : ProductBody(product, settings, problem, context) {
    const Dtype element = unsigned_of(product.operand);
    kernel_ = cuda::load_kernel({"matmul_integer",
                                 embedded::matmul_cu,
                                 {fmt::format("-DELEMENT={}", name_of(element)),
                                  fmt::format("-DSUM={}", element == Dtype::u64 ? "u64" : "u32")}},
                                context.device());
    batch_.count = count_of(product_.batch);
    batch_.rank = product_.batch.rank;
    std::copy_n(product_.batch.values, kMaxRank, batch_.extents);
    std::copy_n(product_.x_strides.values, kMaxRank, batch_.x_strides);
    std::copy_n(product_.other_strides.values, kMaxRank, batch_.other_strides);
  }

 private:
  /// As in matmul.cu.
  struct Batch {
    std::int64_t count;
    std::int64_t extents[kMaxRank], x_strides[kMaxRank], other_strides[kMaxRank];
    std::int32_t rank;
  };

  void multiply(const void* x, const void* other, void* out, void*, const Launch& launch) override {
    const Product& p = product_;
    const std::int64_t tiles = batch_.count * ((p.m + 15) / 16) * ((p.n + 15) / 16);
    const auto blocks = static_cast<unsigned>(std::min<std::int64_t>(tiles, 1 << 20));
    const std::int32_t transposed = p.transposed ? 1 : 0;
    kernel_->launch(launch.stream, {blocks}, {256}, 0,
                    {&x, &other, &out, &p.m, &p.n, &p.k, &transposed, &batch_});
  }

  std::shared_ptr<const cuda::Kernel> kernel_;
  Batch batch_{};
};

}  // namespace

std::unique_ptr<Body> matmul_cuda(const Op& op, const Problem& problem, const Context& context) {
  const auto& settings = op.settings<Matmul>();
  const Product product = resolve(settings, problem.inputs);
  if (is_integer(product.operand))
    return std::make_unique<IntegerBody>(product, settings, problem, context);
  const bool constant = problem.inputs.size() == 1;
  if (constant && cuda::limits(context.device()).architecture == 90 && hopper::fits(product)) {
    if (auto body = hopper::prepare(product, settings, problem, context)) return body;
  }
  return std::make_unique<FloatBody>(product, settings, problem, context);
}

}  // namespace forebay
