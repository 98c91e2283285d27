#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <span>
#include <string>

#include <forebay/array/array.h>
#include <forebay/array/cuda/check.h>
#include <forebay/array/cuda/device.h>
#include <forebay/array/cuda/graph.h>
#include <forebay/array/cuda/hash.h>
#include <forebay/array/cuda/kernel_cache.h>
#include <forebay/array/require.h>
#include <forebay/ops/matmul/gemm.h>

namespace forebay {
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

}  // namespace

struct Gemm::Impl {
  Impl(const Product& p, Dtype result, std::int64_t count, std::int64_t x_stride,
       std::int64_t other_stride, std::int64_t out_stride, const Alignments& alignments, int device,
       bool may_measure)
      : description_(nullptr, cublasLtMatmulDescDestroy),
        other_(nullptr, cublasLtMatrixLayoutDestroy),
        x_(nullptr, cublasLtMatrixLayoutDestroy),
        out_(nullptr, cublasLtMatrixLayoutDestroy),
        handle_(handle_of(device)),
        wide_(p.sum == Dtype::f64 || p.sum == Dtype::c128) {
    const cublasComputeType_t compute = wide_    ? CUBLAS_COMPUTE_64F
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
    std::array<cublasLtMatmulHeuristicResult_t, kCandidates> candidates{};
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
        handle_, description, other_.get(), x_.get(), out_.get(), out_.get(), preference,
        kCandidates, candidates.data(), &found);
    const bool usable = found > 0 && candidates[0].state == CUBLAS_STATUS_SUCCESS;
    FOREBAY_REQUIRE(
        usable || (status != CUBLAS_STATUS_SUCCESS && status != CUBLAS_STATUS_NOT_SUPPORTED),
        unsupported,
        "matmul: cuBLASLt has no algorithm for `x` {} {} and `other` {} {}. Run this stage with "
        "device: cpu, or "
        "choose another `compute`.",
        name_of(p.x.dtype), to_string(p.x.shape), name_of(p.other.dtype), to_string(p.other.shape));
    check_cublas(status, "cublasLtMatmulAlgoGetHeuristic");
    choice_ = candidates[0].algo;
    const double operations = 2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) *
                              static_cast<double>(p.k) * static_cast<double>(count);
    if (may_measure && operations >= kWorthMeasuring && found > 1) {
      const Trial trial{
          .bytes = {bytes_of(p.m * p.k, x_stride, count, p.operand),
                    bytes_of(p.k * p.n, other_stride, count, p.operand),
                    bytes_of(p.m * p.n, out_stride, count, result)},
          .key = fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {} {}", p.m, p.n, p.k,
                             p.transposed, name_of(p.operand), name_of(result), name_of(p.sum),
                             p.tf32, count, x_stride, other_stride, out_stride,
                             fmt::format("{} {} {}", alignments[0], alignments[1], alignments[2]),
                             cublasLtGetVersion())};
      choose(std::span(candidates).first(static_cast<std::size_t>(found)), trial, device);
    }
  }

  void run(const void* x, const void* other, void* out, const void* one, const void* zero,
           void* workspace, const Stream& stream) const {
    check_cublas(cublasLtMatmul(handle_, description_.get(), one, other, other_.get(), x, x_.get(),
                                zero, out, out_.get(), out, out_.get(), &choice_, workspace,
                                kWorkspace, static_cast<cudaStream_t>(stream.native())),
                 "cublasLtMatmul");
  }

  /// The library's first guess is up to 8 % slower than its best candidate (H200, CUDA 13.0).
  static constexpr int kCandidates = 8;
  static constexpr double kWorthMeasuring = 2e9;  // operations: some 10 us and more

  struct Trial {
    std::array<std::size_t, 3> bytes;  ///< of x, other and out
    std::string key;                   ///< all that the choice depends on, but the device
  };

  static std::size_t bytes_of(std::int64_t matrix, std::int64_t stride, std::int64_t count,
                              Dtype dtype) {
    return static_cast<std::size_t>(matrix + stride * (count - 1)) * size_of(dtype);
  }

  /// The fastest candidate: measured once a machine and then kept in the cache folder, since another algorithm may sum
  /// in another order, and a run that goes on later must find the same bits.
  void choose(std::span<const cublasLtMatmulHeuristicResult_t> candidates, const Trial& trial,
              int device) {
    cudaDeviceProp properties{};
    cuda::check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
    cuda::Hash hash;
    hash.add(properties.name);
    hash.add(trial.key);
    const std::string name = "matmul-" + hash.text();
    if (const auto known = cuda::read_cached(name); known && known->size() == sizeof choice_.data) {
      cublasLtMatmulAlgo_t algo{};
      std::memcpy(algo.data, known->data(), sizeof algo.data);
      cublasLtMatmulHeuristicResult_t result{};
      if (cublasLtMatmulAlgoCheck(handle_, description_.get(), other_.get(), x_.get(), out_.get(),
                                  out_.get(), &algo, &result) == CUBLAS_STATUS_SUCCESS &&
          result.workspaceSize <= kWorkspace) {
        choice_ = algo;
        return;
      }
    }
    try {
      measure(candidates, trial, Device::cuda(device));
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::resource) throw;
      return;  // too little memory for a trial: the library's guess
    }
    cuda::write_cached(
        name, std::string(reinterpret_cast<const char*>(choice_.data), sizeof choice_.data));
  }

  void measure(std::span<const cublasLtMatmulHeuristicResult_t> candidates, const Trial& trial,
               Device device) {
    const Context context = Context::create(device);
    const auto memory = [&](std::size_t bytes) {
      Array array = Array::empty({static_cast<std::int64_t>(bytes)}, Dtype::u8, context);
      fill_bytes(array.view(), 0x3c, context.stream);  // small numbers in every float dtype
      return array;
    };
    const Array x = memory(trial.bytes[0]), other = memory(trial.bytes[1]),
                out = memory(trial.bytes[2]), workspace = memory(kWorkspace);
    const double one[2] = {1, 0}, zero[2] = {0, 0};
    const float narrow_one[2] = {1, 0};
    Event begin = cuda::create_timing_event(device), end = cuda::create_timing_event(device);
    constexpr int kRuns = 4;
    float best = std::numeric_limits<float>::infinity();
    for (const cublasLtMatmulHeuristicResult_t& candidate : candidates) {
      if (candidate.state != CUBLAS_STATUS_SUCCESS) continue;
      const cublasLtMatmulAlgo_t before = std::exchange(choice_, candidate.algo);
      const auto once = [&] {
        run(x.data(), other.data(), out.data(), wide_ ? static_cast<const void*>(one) : narrow_one,
            zero, workspace.data(), context.stream);
      };
      once();
      context.stream.record(begin);
      for (int i = 0; i < kRuns; ++i)
        once();
      context.stream.record(end);
      end.synchronize();
      const float took = cuda::elapsed_ms(begin, end);
      if (took < best)
        best = took;
      else
        choice_ = before;
    }
  }

  Description description_;
  Layout other_, x_, out_;
  cublasLtHandle_t handle_;
  bool wide_;  ///< factors are f64
  cublasLtMatmulAlgo_t choice_{};
};

Gemm::Gemm(const Product& p, Dtype result, std::int64_t count, std::int64_t x_stride,
           std::int64_t other_stride, std::int64_t out_stride, const Alignments& alignments,
           int device, bool may_measure)
    : impl_(std::make_unique<Impl>(p, result, count, x_stride, other_stride, out_stride, alignments,
                                   device, may_measure)) {}
Gemm::~Gemm() = default;

void Gemm::run(const void* x, const void* other, void* out, const void* one, const void* zero,
               void* workspace, const Stream& stream) const {
  impl_->run(x, other, out, one, zero, workspace, stream);
}

}  // namespace forebay
