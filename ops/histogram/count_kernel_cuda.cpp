#include <cstring>

#include <forebay/array/require.h>
#include <forebay/ops/expr/device_code.h>
#include <forebay/ops/histogram/count_kernel.h>

namespace forebay::embedded {
extern const char* const slices_cu;
extern const char* const histogram_cu;
extern const char* const histogram_edges_cu;
extern const char* const histogram_finish_cu;
extern const char* const histogram_runs_cu;
extern const char* const histogram_search_cu;
extern const char* const histogram_weights_cu;
}  // namespace forebay::embedded

namespace forebay::histogram_detail {
namespace {

template <class P>
Places<P> places_of(const CountProblem& problem) {
  if (problem.plan.kind != EdgePlan::Kind::range) return {};
  return {problem.plan.low, problem.plan.high, problem.plan.bins, problem.plan.dtype};
}

/// Whether a place is computed in f32, where that is near enough: not every GPU is fast in f64.
bool in_f32(const CountProblem& problem) {
  if (problem.plan.kind != EdgePlan::Kind::range)
    return problem.plan.dtype == Dtype::f32 || size_of(problem.x) <= 2;
  const auto places = places_of<float>(problem);
  return places.usable && places.doubt < 0x1p-6F;
}

bool is_placed(const CountProblem& problem) {
  return in_f32(problem) ? places_of<float>(problem).usable : places_of<double>(problem).usable;
}

template <class P>
void put_places(const Places<P>& places, DeviceSettings& settings) {
  const P numbers[] = {places.scale, places.shift, places.doubt};
  std::memcpy(settings.places.data(), numbers, sizeof(numbers));
}

cuda::KernelSource source(const CountProblem& problem, const char* name, const std::string& loads,
                          const char* text, std::vector<std::string> options) {
  options.push_back(fmt::format("-DPLACE={}", in_f32(problem) ? "f32" : "f64"));
  return {name,
          expr::kPackText + loads + embedded::slices_cu + embedded::histogram_search_cu + text,
          std::move(options)};
}

}  // namespace

DeviceSettings device_settings(const CountProblem& problem) {
  const EdgePlan& plan = problem.plan;
  DeviceSettings settings{.bins = plan.bins,
                          .range = Range(plan.low, plan.high, plan.bins),
                          .equal_width = plan.kind != EdgePlan::Kind::table,
                          .copied = problem.copied()};
  if (in_f32(problem)) {
    put_places(places_of<float>(problem), settings);
  } else {
    put_places(places_of<double>(problem), settings);
  }
  return settings;
}

cuda::KernelSource count_source(const CountProblem& problem, const CountShape& shape,
                                const std::string& loads) {
  const bool closed = is_placed(problem) && problem.copied() && !problem.weighted && !shape.raw;
  std::vector<std::string> options = shape.options();
  options.insert(options.end(), {fmt::format("-DTOTAL={}", problem.weighted ? "f64" : "u64"),
                                 fmt::format("-DDENSITY={:d}", problem.density),
                                 fmt::format("-DSETS={:d}", problem.sets() != 1),
                                 fmt::format("-DCLOSED={:d}", closed)});
  std::string text = problem.weighted ? "" : embedded::histogram_runs_cu;
  text += embedded::histogram_finish_cu;
  text += problem.weighted ? embedded::histogram_weights_cu : embedded::histogram_cu;
  return source(problem, problem.weighted ? "histogram_weights" : "histogram_count", loads,
                text.c_str(), std::move(options));
}

cuda::KernelSource extremes_source(const CountProblem& problem, const std::string& loads) {
  const CountShape shape = extremes_shape(problem.slices, problem.x);
  std::vector<std::string> options = shape.options();
  options.emplace_back("-DEXTREMES=1");
  return source(problem, "histogram_extremes", loads,
                (std::string(embedded::histogram_runs_cu) + embedded::histogram_edges_cu).c_str(),
                std::move(options));
}

cuda::KernelSource edges_source(const CountProblem& problem, const std::string& loads) {
  return source(problem, "histogram_edges", loads, embedded::histogram_edges_cu, {"-DEDGES=1"});
}

}  // namespace forebay::histogram_detail
