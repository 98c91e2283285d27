#include <algorithm>

#include <forebay/array/cuda/kernel.h>
#include <forebay/array/require.h>
#include <forebay/ops/normalize/statistics.h>

namespace forebay::embedded {
extern const char* const slices_cu;
extern const char* const normalize_cu;
}  // namespace forebay::embedded

namespace forebay {
namespace {

using namespace normalize_detail;  // NOLINT(google-build-using-namespace): the other half of this
                                   // file

constexpr int kMostThreads = 1024;  // of a block
constexpr int kMostItems = 16;      // elements of a slice in a thread's registers
constexpr std::int64_t kMostColumns = 32;
constexpr std::int64_t kUnitElements = 32768;  // of a slice that is too long for one block
constexpr std::int64_t kMostBlocks = 1 << 20;  // of a grid; kernels loop over the rest

static_assert(sizeof(Slices) == 22 * 8 && sizeof(Tiling) == 4 * 8,
              "slices.cu has the same structs");

// Parameters of the kernels, as in normalize.cu.
struct DeviceConstant {
  const double* table = nullptr;
  std::int64_t count = 1;
  double value = 0;
};
struct DeviceSettings {
  DeviceConstant mean, std;
  double epsilon = 0;
  std::int64_t ddof = 0;
  std::int64_t epsilon_place = 0;
  std::int64_t has_std = 0, zero = 0;
};

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
int power_of_two(std::int64_t least) {
  int power = 1;
  while (power < least)
    power *= 2;
  return power;
}
bool is_aligned(const void* data, std::size_t bytes) {
  return reinterpret_cast<std::uintptr_t>(data) % bytes == 0;
}
cuda::Dim3 grid_of(std::int64_t blocks) {
  return {static_cast<unsigned>(std::min(blocks, kMostBlocks))};
}

class NormalizeCuda final : public Body {
 public:
  NormalizeCuda(const Normalize& settings, const ArraySpec& x, Dtype output, const Context& context)
      : slices_(slices_of(x.shape, statistics_axes(settings, x.shape))) {
    if (count_of(x.shape) == 0) return;
    const std::int64_t chunk = ceil_div(slices_.columns, ceil_div(slices_.columns, kMostColumns));
    const std::int64_t length = slices_.length();
    one_pass_ = length <= kMostItems * (kMostThreads / chunk);
    const auto load = [&](const char* name, const char* part, int threads, std::int64_t items) {
      return cuda::load_kernel(
          {name,
           std::string(embedded::slices_cu) + embedded::normalize_cu,
           {fmt::format("-DIN={}", name_of(x.dtype)), fmt::format("-DOUT={}", name_of(output)),
            fmt::format("-DNARROW={:d}", is_narrow(x.dtype, output)),
            fmt::format("-DGIVEN_MEAN={:d}", settings.mean.has_value()),
            fmt::format("-D{}=1", part), fmt::format("-DTHREADS={}", threads),
            fmt::format("-DITEMS={}", items)}},
          context.device());
    };

    if (one_pass_) {
      threads_ = 32;
      while (threads_ < kMostThreads && length > kMostItems / 2 * (threads_ / chunk))
        threads_ *= 2;
      tiling_ = tile(slices_, kMostColumns, length);
      slices_kernel_ = load("normalize_slices", "SLICES", threads_,
                            power_of_two(ceil_div(length, threads_ / chunk)));
      vector_ = static_cast<std::int64_t>(16 / size_of(x.dtype));
      if (slices_.columns == 1 && slices_.outer == 1 && length % vector_ == 0) {
        row_threads_ = 32;
        while (row_threads_ * std::max<std::int64_t>(vector_, kMostItems) < length)
          row_threads_ *= 2;
        rows_kernel_ = load("normalize_rows", "ROWS", row_threads_,
                            vector_ * power_of_two(ceil_div(length, vector_ * row_threads_)));
        out_alignment_ =
            std::min<std::size_t>(16, static_cast<std::size_t>(vector_) * size_of(output));
      }
    } else {
      threads_ = 256;
      tiling_ = tile(slices_, kMostColumns, kUnitElements / chunk);
      moments_kernel_ = load("normalize_moments", "MOMENTS", threads_, 1);
      merge_kernel_ = load("normalize_merge", "MERGE", threads_, 1);
      apply_kernel_ = load("normalize_apply", "APPLY", threads_, 1);
    }

    settings_.epsilon = settings.epsilon;
    settings_.ddof = settings.ddof;
    settings_.epsilon_place = static_cast<std::int64_t>(settings.epsilon_place);
    settings_.has_std = settings.std.has_value();
    settings_.zero = settings.zero_std == ZeroStd::zero;
    if (settings.mean) settings_.mean = upload(*settings.mean, context);
    if (settings.std) settings_.std = upload(*settings.std, context);
  }

  std::size_t scratch_bytes() const override {
    if (one_pass_ || moments_kernel_ == nullptr) return 0;
    return partial_bytes() + sizeof(Scale) * static_cast<std::size_t>(slices_.count());
  }

  void run(std::span<const ArrayView> inputs, std::span<const ArrayView> outputs,
           const Launch& launch) override {
    const void* x = inputs[0].data;
    void* out = outputs[0].data;
    if (count_of(inputs[0].shape) == 0 || out == nullptr) return;
    const cuda::Dim3 block{static_cast<unsigned>(threads_)};
    const cuda::Dim3 units = grid_of(tiling_.units(slices_));
    if (rows_kernel_ != nullptr && is_aligned(x, 16) && is_aligned(out, out_alignment_)) {
      rows_kernel_->launch(launch.stream, grid_of(slices_.groups),
                           {static_cast<unsigned>(row_threads_)}, 0,
                           {&x, &out, &slices_, &settings_});
    } else if (one_pass_) {
      slices_kernel_->launch(launch.stream, units, block, 0,
                             {&x, &out, &slices_, &tiling_, &settings_});
    } else {
      void* partials = launch.scratch;
      void* scales = static_cast<char*>(launch.scratch) + partial_bytes();
      moments_kernel_->launch(launch.stream, units, block, 0,
                              {&x, &partials, &slices_, &tiling_, &settings_});
      merge_kernel_->launch(launch.stream, grid_of(slices_.count()), block, 0,
                            {&partials, &scales, &slices_, &tiling_, &settings_});
      apply_kernel_->launch(launch.stream, units, block, 0,
                            {&x, &out, &scales, &slices_, &tiling_, &settings_});
    }
  }

 private:
  std::size_t partial_bytes() const {
    return sizeof(Moments) * static_cast<std::size_t>(tiling_.units(slices_) * tiling_.chunk);
  }

  DeviceConstant upload(const Reals& constant, const Context& context) {
    if (constant.values.size() == 1) return {nullptr, 1, constant.values[0]};
    const auto count = static_cast<std::int64_t>(constant.values.size());
    tables_.push_back(copy_to(Array::from(Dims{count}, constant.values), context));
    context.stream.synchronize();  // runs may come on other streams
    return {tables_.back().as<double>(), count, 0};
  }

  Slices slices_;
  Tiling tiling_;
  DeviceSettings settings_;
  std::vector<Array> tables_;
  bool one_pass_ = false;
  int threads_ = 0;
  int row_threads_ = 0;
  std::int64_t vector_ = 1;
  std::size_t out_alignment_ = 16;
  std::shared_ptr<const cuda::Kernel> slices_kernel_, rows_kernel_, moments_kernel_, merge_kernel_,
      apply_kernel_;
};

}  // namespace

std::unique_ptr<Body> normalize_cuda(const Op& op, const Problem& problem, const Context& context) {
  return std::make_unique<NormalizeCuda>(op.settings<Normalize>(), problem.inputs[0],
                                         problem.outputs[0].dtype, context);
}

}  // namespace forebay
