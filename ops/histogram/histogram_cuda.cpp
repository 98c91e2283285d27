#include <algorithm>

#include <forebay/array/cuda/kernel.h>
#include <forebay/array/require.h>
#include <forebay/ops/histogram/edges.h>

namespace forebay::embedded {
extern const char* const slices_cu;
extern const char* const histogram_cu;
}  // namespace forebay::embedded

namespace forebay {
namespace {

using namespace histogram_detail;  // NOLINT(google-build-using-namespace): the other half of this
                                   // file

constexpr std::int64_t kSharedBytes = 48 * 1024;  // of a block, without asking for more
constexpr std::int64_t kMostColumns = 32;
constexpr std::int64_t kUnitElements =
    8192;  // at least, so that emptying and adding up counters is the smaller part
constexpr std::int64_t kUnits = 1024;          // aimed at: enough to fill any GPU
constexpr std::int64_t kMostBlocks = 1 << 20;  // of a grid; kernels loop over the rest
constexpr unsigned kThreads = 256;

struct DeviceSettings {
  std::int64_t bins = 0, sets = 0, equal_width = 0, copies = 0;
};

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
cuda::Dim3 grid_of(std::int64_t blocks) {
  return {static_cast<unsigned>(std::min(blocks, kMostBlocks))};
}

class HistogramCuda final : public Body {
 public:
  HistogramCuda(const Histogram& settings, const Problem& problem, const Context& context)
      : plan_(plan_edges(settings, problem.inputs[0].dtype)),
        density_(settings.density),
        weighted_(problem.inputs.size() > 1),
        slices_(
            slices_of(problem.inputs[0].shape, counted_axes(settings, problem.inputs[0].shape))) {
    cut();
    const Dtype x = problem.inputs[0].dtype;
    const Dtype key = x == Dtype::i64 || x == Dtype::u64 ? x : plan_.dtype;
    const auto load = [&](const char* name, const char* part) {
      cuda::KernelSource source{
          name,
          std::string(embedded::slices_cu) + embedded::histogram_cu,
          {fmt::format("-DIN={}", name_of(x)), fmt::format("-DKEY={}", name_of(key)),
           fmt::format("-DEDGE={}", name_of(plan_.dtype)), fmt::format("-D{}=1", part)}};
      if (weighted_)
        source.options.push_back(fmt::format("-DWEIGHT={}", name_of(problem.inputs[1].dtype)));
      return cuda::load_kernel(source, context.device());
    };
    if (plan_.kind == EdgePlan::Kind::inferred)
      extremes_kernel_ = load("histogram_extremes", "EXTREMES");
    edges_kernel_ = load("histogram_edges", "EDGES");
    count_kernel_ = load("histogram_count", "COUNT");
    finish_kernel_ = load("histogram_finish", "FINISH");
    if (!weighted_ && copies_ == 0) zero_kernel_ = load("histogram_zero", "ZERO");

    if (plan_.kind == EdgePlan::Kind::table) {
      const Array table =
          plan_.dtype == Dtype::f32
              ? Array::from(Dims{plan_.bins + 1},
                            std::vector<float>(plan_.table.begin(), plan_.table.end()))
              : Array::from(Dims{plan_.bins + 1}, plan_.table);
      table_ = copy_to(table, context);
      context.stream.synchronize();  // runs may come on other streams
    }
  }

  std::size_t scratch_bytes() const override {
    return static_cast<std::size_t>(edge_bytes() + extreme_bytes() + 8 * counter_count());
  }

  void run(std::span<const ArrayView> inputs, std::span<const ArrayView> outputs,
           const Launch& launch) override {
    char* scratch = static_cast<char*>(launch.scratch);
    const void* x = inputs[0].data;
    const void* table = plan_.kind == EdgePlan::Kind::table ? table_.data() : nullptr;
    void* edges = outputs[1].data != nullptr ? outputs[1].data : scratch;
    void* extremes = plan_.kind == EdgePlan::Kind::inferred ? scratch + edge_bytes() : nullptr;
    void* counters = scratch + edge_bytes() + extreme_bytes();
    const std::int64_t bins = plan_.bins, sets = edge_sets();
    const cuda::Dim3 units = grid_of(tiling_.units(slices_)), block{kThreads};

    if (extremes != nullptr && units.x > 0) {
      extremes_kernel_->launch(launch.stream, units, block, 0, {&x, &extremes, &slices_, &tiling_});
    }
    if (sets > 0) {
      edges_kernel_->launch(
          launch.stream, grid_of(sets), block, 0,
          {&extremes, &table, &edges, &slices_, &tiling_, &sets, &bins, &plan_.low, &plan_.high});
    }
    if (units.x == 0) return;  // no histogram at all

    const DeviceSettings settings{bins, sets, plan_.kind != EdgePlan::Kind::table, copies_};
    if (weighted_) {
      const void* weights = inputs[1].data;
      const auto warps = static_cast<unsigned>(std::max<std::int64_t>(1, copies_));
      count_kernel_->launch(launch.stream, units, {32 * warps},
                            static_cast<std::size_t>(8 * copies_ * keys()),
                            {&x, &weights, &edges, &counters, &slices_, &tiling_, &settings});
    } else {
      const std::int64_t count = counter_count();
      if (copies_ == 0) {
        zero_kernel_->launch(launch.stream, grid_of(ceil_div(count, kThreads)), block, 0,
                             {&counters, &count});
      }
      count_kernel_->launch(launch.stream, units, block,
                            static_cast<std::size_t>(4 * copies_ * keys()),
                            {&x, &edges, &counters, &slices_, &tiling_, &settings});
    }

    Tiling counted = tiling_;
    if (share_counters()) counted.blocks = 1;
    void* hist = outputs[0].data;
    void* ignored = outputs[2].data;
    const int density = density_;
    finish_kernel_->launch(
        launch.stream, grid_of(slices_.count()), block, 0,
        {&counters, &edges, &hist, &ignored, &slices_, &counted, &bins, &sets, &density});
  }

 private:
  /// Cuts the work into units whose counters fit shared memory, where that can be.
  void cut() {
    const std::int64_t bytes = weighted_ ? 8 : 4;
    const std::int64_t fit = kSharedBytes / bytes / (plan_.bins + 1);  // columns
    const bool in_shared = fit > 0;
    std::int64_t columns = kMostColumns;
    if (in_shared) {
      const std::int64_t few =
          kSharedBytes / 8 / bytes / (plan_.bins + 1);  // leaves room for copies
      columns = std::min({columns, fit, std::max<std::int64_t>(8, few)});
    }
    const std::int64_t chunks = std::max<std::int64_t>(1, ceil_div(slices_.columns, columns));
    const std::int64_t chunk = std::max<std::int64_t>(1, ceil_div(slices_.columns, chunks));
    const std::int64_t wanted =
        std::max<std::int64_t>(1, kUnits / std::max<std::int64_t>(1, slices_.groups * chunks));
    std::int64_t block =
        std::max({ceil_div(slices_.length(), wanted), kUnitElements / chunk, 4 * (plan_.bins + 1)});
    block = std::min(block, (std::int64_t{1} << 31) / chunk);  // counters of a unit are u32
    tiling_ = tile(slices_, columns, block);

    if (!in_shared) return;
    const std::int64_t elements = tiling_.chunk * tiling_.block;
    copies_ = weighted_ ? kThreads / 32 : 32;
    while (copies_ > 1 &&
           (copies_ * keys() * bytes > kSharedBytes || copies_ * keys() > 4 * elements))
      copies_ /= 2;
  }

  std::int64_t keys() const { return tiling_.chunk * (plan_.bins + 1); }
  std::int64_t edge_sets() const {
    return plan_.kind == EdgePlan::Kind::inferred ? slices_.count() : 1;
  }
  bool share_counters() const { return !weighted_ && copies_ == 0; }
  std::int64_t counter_count() const {
    return (share_counters() ? slices_.groups * tiling_.chunks : tiling_.units(slices_)) * keys();
  }
  std::int64_t edge_bytes() const { return 8 * edge_sets() * (plan_.bins + 1); }
  std::int64_t extreme_bytes() const {
    return plan_.kind == EdgePlan::Kind::inferred ? 16 * tiling_.units(slices_) * tiling_.chunk : 0;
  }

  EdgePlan plan_;
  bool density_;
  bool weighted_;
  Slices slices_;
  Tiling tiling_;
  std::int64_t copies_ = 0;
  Array table_;
  std::shared_ptr<const cuda::Kernel> extremes_kernel_, edges_kernel_, zero_kernel_, count_kernel_,
      finish_kernel_;
};

}  // namespace

std::unique_ptr<Body> histogram_cuda(const Op& op, const Problem& problem, const Context& context) {
  return std::make_unique<HistogramCuda>(op.settings<Histogram>(), problem, context);
}

}  // namespace forebay
