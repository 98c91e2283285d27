#include <algorithm>

#include <forebay/array/cuda/device.h>
#include <forebay/array/require.h>
#include <forebay/ops/expr/device_code.h>
#include <forebay/ops/histogram/count_kernel.h>

namespace forebay {
namespace {

using namespace histogram_detail;  // NOLINT(google-build-using-namespace): the other half of this
                                   // file

constexpr std::int64_t kMostBlocks = 1 << 20;  // of kernels that loop over the rest
constexpr unsigned kExtremesThreads = 256;

/// Outputs in histogram_finish.cu.
struct DeviceOutputs {
  void* hist = nullptr;
  void* ignored = nullptr;
  void* edges = nullptr;
};

cuda::Dim3 grid_of(std::int64_t blocks) {
  return {static_cast<unsigned>(std::min(blocks, kMostBlocks))};
}

class HistogramCuda final : public Body {
 public:
  HistogramCuda(const Histogram& settings, const Problem& problem, const Context& context)
      : problem_{plan_edges(settings, problem.inputs[0].dtype),
                 slices_of(problem.inputs[0].shape,
                           counted_axes(settings, problem.inputs[0].shape)),
                 problem.inputs[0].dtype, problem.inputs.size() > 1, settings.density},
        settings_(device_settings(problem_)),
        load_x_(expr::device_load("LoadX", problem.load(0), context)) {
    const cuda::DeviceLimits& limits = cuda::limits(context.device());
    const auto shared = static_cast<std::int64_t>(limits.shared_memory_per_block);
    shape_ = problem_.weighted
                 ? weighted_shape(slices_, bins_)
                 : count_shape(slices_, bins_, problem_.x,
                               {.multiprocessors = limits.multiprocessors, .shared_bytes = shared});
    std::string loads = load_x_.text;
    if (problem_.weighted) {
      load_weights_ = expr::device_load("LoadWeights", problem.load(1), context);
      loads += load_weights_.text;
    }
    if (problem_.inferred()) {
      extremes_kernel_ = cuda::load_kernel(extremes_source(problem_, loads), context.device());
      edges_kernel_ = cuda::load_kernel(edges_source(problem_, loads), context.device());
    }
    kernel_ = cuda::load_kernel(count_source(problem_, shape_, loads), context.device());
    make_memory(context);
  }

  std::size_t scratch_bytes() const override {
    return static_cast<std::size_t>(edge_bytes() + extreme_bytes() + sum_bytes());
  }

  void run(std::span<const ArrayView> inputs, std::span<const ArrayView> outputs,
           const Launch& launch) override {
    char* scratch = static_cast<char*>(launch.scratch);
    const void* x = load_x_.parameter(inputs).data();
    if (problem_.inferred() && shape_.tiling.units(slices_) == 0) return;  // no histogram at all

    DeviceOutputs out{outputs[0].data, outputs[2].data, outputs[1].data};
    const void* table = table_.count() > 0 ? table_.data() : nullptr;
    if (problem_.inferred()) {
      void* edges = out.edges != nullptr ? out.edges : scratch;
      find_edges(x, scratch + edge_bytes(), edges, launch.stream);
      table = edges;
      out.edges = nullptr;
    }
    void* totals = problem_.weighted ? scratch + edge_bytes() + extreme_bytes() : totals_.data();
    void* tickets = tickets_.data();
    std::vector<const void*> arguments{x};
    if (problem_.weighted) arguments.push_back(load_weights_.parameter(inputs).data());
    arguments.insert(arguments.end(),
                     {&table, &totals, &tickets, &out, &slices_, &shape_.tiling, &settings_});
    const std::int64_t teams = shape_.block / shape_.team;
    const std::int64_t blocks = (shape_.tiling.units(slices_) + teams - 1) / teams;
    const cuda::Dim3 grid =
        problem_.weighted ? grid_of(blocks) : cuda::Dim3{static_cast<unsigned>(blocks)};
    kernel_->launch(launch.stream, {std::max(grid.x, 1U)}, {static_cast<unsigned>(shape_.block)},
                    shared_bytes(), arguments);
  }

 private:
  void make_memory(const Context& context) {
    if (!problem_.inferred() &&
        (problem_.plan.kind == EdgePlan::Kind::table || !problem_.copied())) {
      const std::vector<double> edges = all_edges(problem_.plan);
      const Array host =
          problem_.plan.dtype == Dtype::f32
              ? Array::from(Dims{bins_ + 1}, std::vector<float>(edges.begin(), edges.end()))
              : Array::from(Dims{bins_ + 1}, edges);
      table_ = copy_to(host, context);
    }
    if (shape_.split) {
      if (!problem_.weighted)
        totals_ = Array::zeros({slices_.count() * bins_}, Dtype::u64, context);
      tickets_ = Array::zeros({slices_.groups * shape_.tiling.chunks}, Dtype::u32, context);
    }
    if (shape_.split || table_.count() > 0)
      context.stream.synchronize();  // runs may come on other streams
  }

  void find_edges(const void* x, void* extremes, void* edges, const Stream& stream) const {
    const Tiling& t = extremes_tiling_;
    extremes_kernel_->launch(stream, grid_of(t.units(slices_)), {kExtremesThreads}, 0,
                             {x, &extremes, &slices_, &t});
    edges_kernel_->launch(stream, grid_of(slices_.count()), {kExtremesThreads}, 0,
                          {&extremes, &edges, &slices_, &t, &bins_});
  }

  std::size_t shared_bytes() const {
    const std::int64_t counters = problem_.weighted
                                      ? 8 * shape_.copies * shape_.tiling.chunk * (bins_ + 1)
                                      : shape_.counter_bytes(shape_.slots(bins_));
    return static_cast<std::size_t>(counters + (problem_.copied() ? problem_.set_bytes() : 0));
  }
  std::int64_t edge_bytes() const {
    return problem_.inferred() ? 8 * problem_.sets() * (bins_ + 1) : 0;
  }
  std::int64_t extreme_bytes() const {
    return problem_.inferred() ? 16 * extremes_tiling_.units(slices_) * extremes_tiling_.chunk : 0;
  }
  std::int64_t sum_bytes() const {
    const Tiling& t = shape_.tiling;
    return problem_.weighted ? 8 * t.units(slices_) * t.chunk * (bins_ + 1) : 0;
  }

  CountProblem problem_;
  const Slices& slices_ = problem_.slices;
  const std::int64_t& bins_ = problem_.plan.bins;
  DeviceSettings settings_;
  expr::DeviceCode load_x_, load_weights_;
  CountShape shape_;
  Tiling extremes_tiling_ = extremes_shape(slices_, problem_.x).tiling;
  Array table_;    ///< the edges, where they are known and blocks do not make them
  Array totals_;   ///< of slices that are several units, and
  Array tickets_;  ///< how many of those are done: zeros between runs
  std::shared_ptr<const cuda::Kernel> extremes_kernel_, edges_kernel_, kernel_;
};

}  // namespace

std::unique_ptr<Body> histogram_cuda(const Op& op, const Problem& problem, const Context& context) {
  return std::make_unique<HistogramCuda>(op.settings<Histogram>(), problem, context);
}

}  // namespace forebay
