#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <mutex>

#include <forebay/array/cuda/device.h>
#include <forebay/array/cuda/kernel.h>
#include <forebay/array/require.h>
#include <forebay/ops/matmul/product.h>

namespace forebay {
namespace embedded {
extern const char* const matmul_cu;
}
namespace {

void check_cublas(cublasStatus_t status, const char* call) {
  FOREBAY_REQUIRE(status != CUBLAS_STATUS_ALLOC_FAILED, resource,
                  "matmul: `{}` found too little memory on the device.", call);
  FOREBAY_REQUIRE(status == CUBLAS_STATUS_SUCCESS, device, "matmul: CUDA failed at `{}`: {} ({}).",
                  call, cublasLtGetStatusString(status), cublasLtGetStatusName(status));
}

/// cuBLASLt's handle for `device`: thread-safe, one for each device of the process. Never
/// destroyed, since the driver may be gone when static objects are.
cublasLtHandle_t handle_of(int device) {
  static std::mutex mutex;
  static auto& handles = *new std::map<int, cublasLtHandle_t>;
  const std::lock_guard lock(mutex);
  cublasLtHandle_t& handle = handles[device];
  if (handle == nullptr) {
    const cuda::DeviceGuard guard(device);
    check_cublas(cublasLtCreate(&handle), "cublasLtCreate");
  }
  return handle;
}

using Description =
    std::unique_ptr<cublasLtMatmulDescOpaque_t, decltype(&cublasLtMatmulDescDestroy)>;
using Layout =
    std::unique_ptr<cublasLtMatrixLayoutOpaque_t, decltype(&cublasLtMatrixLayoutDestroy)>;
using Preference =
    std::unique_ptr<cublasLtMatmulPreferenceOpaque_t, decltype(&cublasLtMatmulPreferenceDestroy)>;

cudaDataType type_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::f16:
      return CUDA_R_16F;
    case Dtype::bf16:
      return CUDA_R_16BF;
    case Dtype::f32:
      return CUDA_R_32F;
    case Dtype::f64:
      return CUDA_R_64F;
    case Dtype::c64:
      return CUDA_C_32F;
    default:
      return CUDA_C_64F;
  }
}

/// `count` column-major matrices, `stride` elements apart.
Layout make_layout(Dtype dtype, std::int64_t rows, std::int64_t columns, std::int64_t count,
                   std::int64_t stride) {
  cublasLtMatrixLayout_t layout = nullptr;
  check_cublas(cublasLtMatrixLayoutCreate(&layout, type_of(dtype), static_cast<std::uint64_t>(rows),
                                          static_cast<std::uint64_t>(columns), rows),
               "cublasLtMatrixLayoutCreate");
  Layout owner(layout, cublasLtMatrixLayoutDestroy);
  const auto batch = static_cast<std::int32_t>(count);
  check_cublas(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch,
                                                sizeof batch),
               "cublasLtMatrixLayoutSetAttribute");
  check_cublas(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                                &stride, sizeof stride),
               "cublasLtMatrixLayoutSetAttribute");
  return owner;
}

/// 32 MiB is what NVIDIA recommends for Hopper and later.
constexpr std::size_t kWorkspace = std::size_t{32} << 20;

/// The bytes that x, other and out are aligned to.
using Alignments = std::array<std::uint32_t, 3>;

/// One call of the library: the product of a strided batch, with the algorithm chosen for it.
class Gemm {
 public:
  Gemm(const Product& p, Dtype result, std::int64_t count, std::int64_t x_stride,
       std::int64_t other_stride, std::int64_t out_stride, const Alignments& alignments, int device)
      : description_(nullptr, cublasLtMatmulDescDestroy),
        other_(nullptr, cublasLtMatrixLayoutDestroy),
        x_(nullptr, cublasLtMatrixLayoutDestroy),
        out_(nullptr, cublasLtMatrixLayoutDestroy),
        handle_(handle_of(device)) {
    const bool wide = p.sum == Dtype::f64 || p.sum == Dtype::c128;
    const cublasComputeType_t compute = wide     ? CUBLAS_COMPUTE_64F
                                        : p.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                 : CUBLAS_COMPUTE_32F;
    cublasLtMatmulDesc_t description = nullptr;
    check_cublas(cublasLtMatmulDescCreate(&description, compute, type_of(p.sum)),
                 "cublasLtMatmulDescCreate");
    description_.reset(description);
    // A row-major matrix is its transpose in the library's column-major order, so out^T = other^T
    // x^T is asked for.
    const cublasOperation_t transpose = p.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    check_cublas(cublasLtMatmulDescSetAttribute(description, CUBLASLT_MATMUL_DESC_TRANSA,
                                                &transpose, sizeof transpose),
                 "cublasLtMatmulDescSetAttribute");
    other_ = p.transposed ? make_layout(p.operand, p.k, p.n, count, other_stride)
                          : make_layout(p.operand, p.n, p.k, count, other_stride);
    x_ = make_layout(p.operand, p.k, p.m, count, x_stride);
    out_ = make_layout(result, p.n, p.m, count, out_stride);

    cublasLtMatmulPreference_t preference = nullptr;
    check_cublas(cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
    const Preference owner(preference, cublasLtMatmulPreferenceDestroy);
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
      check_cublas(
          cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value),
          "cublasLtMatmulPreferenceSetAttribute");
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{kWorkspace});
    // Partial sums of a split K are added in the type of the sum, never in a narrower result.
    prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
           std::uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignments[1]);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignments[0]);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignments[2]);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignments[2]);

    const cuda::DeviceGuard guard(device);
    int found = 0;
    const cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(handle_, description, other_.get(), x_.get(), out_.get(),
                                       out_.get(), preference, 1, &choice_, &found);
    const bool usable = found == 1 && choice_.state == CUBLAS_STATUS_SUCCESS;
    FOREBAY_REQUIRE(
        usable || (status != CUBLAS_STATUS_SUCCESS && status != CUBLAS_STATUS_NOT_SUPPORTED),
        unsupported,
        "matmul: cuBLASLt has no algorithm for `x` {} {} and `other` {} {}. Run this stage with "
        "device: cpu, or "
        "choose another `compute`.",
        name_of(p.x.dtype), to_string(p.x.shape), name_of(p.other.dtype), to_string(p.other.shape));
    check_cublas(status, "cublasLtMatmulAlgoGetHeuristic");
  }

  void run(const void* x, const void* other, void* out, const void* one, const void* zero,
           void* workspace, const Stream& stream) const {
    check_cublas(cublasLtMatmul(handle_, description_.get(), one, other, other_.get(), x, x_.get(),
                                zero, out, out_.get(), out, out_.get(), &choice_.algo, workspace,
                                kWorkspace, static_cast<cudaStream_t>(stream.native())),
                 "cublasLtMatmul");
  }

 private:
  Description description_;
  Layout other_, x_, out_;
  cublasLtHandle_t handle_;
  cublasLtMatmulHeuristicResult_t choice_{};
};

class FloatBody final : public ProductBody {
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
      gemm(std::min(kMostProducts, count_ - first), aligned);
    return kWorkspace;
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
        gemm(std::min(kMostProducts, count_ - i), aligned)
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

  const Gemm& gemm(std::int64_t count, const Alignments& aligned) const {
    auto& gemm = gemms_[{count, aligned}];
    if (gemm == nullptr) {
      gemm = std::make_unique<Gemm>(product_, dtypes_.given, count, x_stride_, other_stride_,
                                    products_per_step_ * product_.m * product_.n, aligned, device_);
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
  return std::make_unique<FloatBody>(product, settings, problem, context);
}

}  // namespace forebay
