#include <algorithm>
#include <limits>
#include <numeric>

#include <forebay/array/cuda/kernel.h>
#include <forebay/array/require.h>
#include <forebay/ops/expr/device_code.h>
#include <forebay/ops/normalize/statistics.h>

namespace forebay::embedded {
extern const char* const slices_cu;
extern const char* const normalize_cu;
extern const char* const normalize_statistics_cu;
extern const char* const normalize_results_cu;
extern const char* const normalize_slices_cu;
extern const char* const normalize_moments_cu;
extern const char* const normalize_apply_cu;
}  // namespace forebay::embedded

namespace forebay {
namespace {

using namespace normalize_detail;  // NOLINT(google-build-using-namespace): the other half of this
                                   // file

// What follows depends on shapes and dtypes alone, never on the model of GPU: so do the bits.
constexpr int kMostThreads = 1024;                // of a block
constexpr int kUnitThreads = 256;                 // of a block that has a part of a slice
constexpr std::int64_t kMostPack = 8;             // elements of a pack
constexpr std::int64_t kRegisterBytes = 128;      // of a slice in a thread's registers
constexpr std::int64_t kMostPacks = 16;           // likewise
constexpr std::int64_t kBusyThreads = 132 << 10;  // below, teams are larger
constexpr std::int64_t kUnitElements = 32768;     // of a slice that is too long for one block
constexpr std::int64_t kManyUnits = 1024;         // of one slice
constexpr std::int64_t kLeastUnit = 4096;
constexpr std::int64_t kMergedAtOnce = 4 * kUnitThreads;  // parts
constexpr std::int64_t kLongRun = 2048;    // elements; shorter runs of a slice share units
constexpr std::size_t kMomentsBytes = 24;  // of normalize_statistics.cu's Moments
constexpr std::int64_t kSharedBytes = 48 << 10;
constexpr std::int64_t kMostBlocks = 1 << 20;  // of a grid; kernels loop over the rest

// Parameters of the kernels, as in normalize.cu.
struct DeviceConstant {
  const double* table = nullptr;
  std::int64_t count = 1;
  double value = 0;
};
struct DeviceSettings {
  DeviceConstant mean, std;
  double epsilon = 0, length = 1, per_element = 1, per_degree = 1;
  std::int64_t zero = 0;
};
struct Work {
  Slices slices;
  std::int64_t columns = 1, depth = 1;
  std::int64_t chunk = 1, chunks = 1;
  std::int64_t block = 1, blocks = 1, runs = 1;
  std::int64_t bundle = 1, bundles = 1;

  std::int64_t strips() const { return slices.groups * chunks; }
  std::int64_t units() const { return strips() * runs * blocks; }
  std::int64_t rows() const { return runs == 1 ? slices.length() : slices.rows; }
};
static_assert(sizeof(Slices) == 22 * 8, "slices.cu has the same struct");

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
cuda::Dim3 grid_of(std::int64_t blocks) {
  return {static_cast<unsigned>(std::min(blocks, kMostBlocks))};
}

/// The widest elements that lie side by side in memory on the way in or out.
std::size_t widest(const expr::Program& load, Dtype stored) {
  std::size_t bytes = size_of(stored);
  const int last = load.shape.rank - 1;
  for (const expr::Program::Leaf& leaf : load.leaves) {
    if (last >= 0 && leaf.strides[last] != 0) bytes = std::max(bytes, size_of(leaf.dtype));
  }
  return bytes;
}

/// How the kernels go over the slices of one shape.
struct Road {
  Work work;
  std::int64_t pack = 1;   ///< elements
  std::int64_t packs = 1;  ///< of a thread, at once
  int threads = kUnitThreads, team = kUnitThreads;
  bool whole = false;  ///< slices fit in registers
  bool linear = true;  ///< a unit stays in one run
  bool exact = false;  ///< every thread has all of its packs
  bool row_axis = false;
  bool ragged = false;  ///< slices begin and end within packs

  bool has_columns() const { return work.columns > 1; }
  /// Slices of a unit.
  std::int64_t width() const {
    return has_columns() ? std::min(work.columns, work.chunk * pack) : 1;
  }
  /// At once on a multiprocessor: as many as leave a thread the registers that it needs, so that the
  /// compiler takes no more.
  int blocks() const {
    const int at_once = has_columns() && (whole || pack > 4) ? 512
                        : whole && !ragged && !has_columns() ? kMostThreads
                                                             : 768;
    return std::max(1, at_once / threads);
  }
};

/// Rows of as many whole rows of the array as packs of `pack` elements fill; false when packs do
/// not fit.
bool in_packs(const Slices& slices, std::int64_t pack, Road& road) {
  const std::int64_t depth = pack / std::gcd(slices.columns, pack);
  if (slices.rows % depth != 0 || (depth > 1 && slices.columns > kUnitThreads)) return false;
  road.pack = pack;
  road.work.slices = slices;
  road.work.slices.columns *= depth;
  road.work.slices.rows /= depth;
  road.work.columns = slices.columns;
  road.work.depth = depth;
  return true;
}

/// Columns of a unit, in packs: no more than `bytes` of f32; those of a row of several rows all.
void set_chunk(Road& road, std::int64_t bytes) {
  Work& work = road.work;
  const std::int64_t packs = work.slices.columns / road.pack;
  const std::int64_t most = std::max<std::int64_t>(1, bytes / (road.pack * 4));
  work.chunks = work.depth > 1 ? 1 : ceil_div(packs, most);
  work.chunk = ceil_div(packs, work.chunks);
  work.chunks = ceil_div(packs, work.chunk);
}

std::int64_t most_packs(const Road& road, Dtype input) {
  const auto bytes =
      std::max<std::int64_t>(4, road.pack * static_cast<std::int64_t>(size_of(input)));
  return std::clamp<std::int64_t>(kRegisterBytes / bytes, 1, kMostPacks);
}

/// Teams for slices whose elements are neighbours: 4 packs a thread, 8 of long ones, and fewer where
/// there are few slices. False when they do not fit.
bool fit_neighbours(Road& road, std::int64_t most) {
  const std::int64_t packs = road.ragged ? (road.work.slices.rows + 2 * road.pack - 2) / road.pack
                                         : road.work.slices.length();
  std::int64_t team = 1;
  const std::int64_t few = std::min<std::int64_t>(most, road.ragged ? 5 : 4);
  while (team * (team < 4 ? 1 : team < 128 ? few : most) < packs)
    team *= 2;
  while (team < kMostThreads && team * 2 <= packs && team * road.work.slices.groups < kBusyThreads)
    team *= 2;
  if (team > kMostThreads) return false;
  road.team = static_cast<int>(team);
  road.threads = team <= 32 ? kUnitThreads : road.team;
  road.packs = ceil_div(packs, team);
  road.exact = road.linear && !road.ragged && packs == team * road.packs;
  return true;
}

/// A block for some columns of each group. False when they do not fit.
bool fit_columns(Road& road, std::int64_t most) {
  Work& work = road.work;
  for (const std::int64_t bytes : {512, 256, 128}) {
    set_chunk(road, bytes);
    const std::int64_t lanes = ceil_div(work.slices.length(), most);
    const std::int64_t threads = ceil_div(std::max<std::int64_t>(64, work.chunk * lanes), 32) * 32;
    if (threads > kMostThreads || threads * road.pack * 16 > kSharedBytes) continue;
    road.threads = road.team = static_cast<int>(threads);
    road.packs = ceil_div(work.slices.length(), threads / work.chunk);
    return true;
  }
  return false;
}

/// Whole slices, when they fit in registers.
bool fit_slices(Road& road, Dtype input) {
  road.work.block = road.work.slices.length();
  road.work.blocks = road.work.runs = 1;
  road.linear = road.work.slices.outer == 1;
  const std::int64_t most =
      std::min<std::int64_t>(most_packs(road, input), road.pack == 1 ? 16 : 8);
  return road.whole = road.has_columns() ? fit_columns(road, most) : fit_neighbours(road, most);
}

/// Parts of slices, of about `unit` elements.
void cut_slices(Road& road, std::int64_t unit) {
  Work& work = road.work;
  set_chunk(road, 512);
  work.runs = 1;
  road.linear = work.slices.outer == 1;
  if (work.slices.outer > 1 && work.slices.rows * work.slices.columns >= kLongRun) {
    work.runs = work.slices.outer;
    road.linear = true;
  }
  // Whole rows and whole warps, so that accesses begin where a line of memory does.
  const auto fitting = static_cast<int>(std::lcm<std::int64_t>(32, work.chunk));
  road.threads = fitting > kUnitThreads ? kUnitThreads : kUnitThreads / fitting * fitting;
  road.team = road.threads;
  const std::int64_t lanes = road.threads / work.chunk, each = lanes * road.packs;
  const std::int64_t batches = std::max<std::int64_t>(1, unit / (each * work.chunk * road.pack));
  work.block = std::min(each * batches, work.rows());
  work.blocks = ceil_div(work.rows(), work.block);
  const std::int64_t parts = work.runs * work.blocks;
  work.bundle = 1;
  while (work.bundle * work.bundle < parts)
    work.bundle *= 2;
  if (parts * road.width() <= kMergedAtOnce) work.bundle = parts;
  work.bundles = ceil_div(parts, work.bundle);
}

/// Elements of a unit, at most. Where a slice has many units, the last of which end the first
/// reading while little else is read, half as many; of columns, whose threads end with more to
/// merge, twice as many.
std::int64_t most_of_unit(const Road& road) {
  if (road.has_columns()) return 2 * kUnitElements;
  const Slices& slices = road.work.slices;
  const bool many = slices.length() * slices.columns > kManyUnits * kUnitElements;
  return many ? kUnitElements / 2 : kUnitElements;
}

/// Whether elements lie in memory in their order, or are the same everywhere.
bool is_flat(const expr::Program& program) {
  return std::all_of(program.leaves.begin(), program.leaves.end(), [&](const auto& leaf) {
    return is_dense(program.shape, leaf.strides) ||
           std::all_of(leaf.strides.begin(), leaf.strides.end(), [](auto s) { return s == 0; });
  });
}

/// Neighbours that packs do not divide, in packs nevertheless: each is in registers or not, so that
/// those at the ends cost a comparison.
bool fit_ragged(Road& road, const Slices& slices, std::int64_t pack, Dtype input) {
  if (slices.columns > 1 || slices.outer > 1 || slices.rows < 8 * pack) return false;
  Road ragged;
  ragged.work.slices = slices;
  ragged.pack = pack;
  ragged.ragged = true;
  if (!fit_slices(ragged, input)) return false;
  road = ragged;
  return true;
}

Road road_of(const Slices& slices, const ArraySpec& x, const expr::Program& load,
             const expr::Program& store, std::size_t bytes) {
  Road road;
  const auto widest = std::min<std::int64_t>(kMostPack, static_cast<std::int64_t>(16 / bytes));
  std::int64_t pack = widest;
  while (!in_packs(slices, pack, road))
    pack /= 2;
  if (pack < widest && is_flat(load) && is_flat(store) && fit_ragged(road, slices, widest, x.dtype))
    return road;
  if (!fit_slices(road, x.dtype)) {
    road.threads = road.team = kUnitThreads;
    road.exact = false;
    road.packs = std::min<std::int64_t>(most_packs(road, x.dtype), road.has_columns() ? 4 : 8);
    cut_slices(road, std::clamp(count_of(x.shape) / 1024, kLeastUnit, most_of_unit(road)));
  }
  road.row_axis = slices.columns == 1 && slices.outer == 1 && x.shape.rank > 0 &&
                  x.shape[x.shape.rank - 1] == slices.rows;
  return road;
}

/// The same for the second reading: units of what the registers hold at once, or of columns, each
/// with a scale of its own, four times that.
Road applying(Road road) {
  road.packs = std::min<std::int64_t>(road.packs, 4);
  cut_slices(road, road.has_columns() ? 4 * road.threads * road.packs * road.pack : 1);
  return road;
}

class NormalizeCuda final : public Body {
 public:
  NormalizeCuda(const Normalize& settings, const Problem& problem, const Context& context)
      : NormalizeCuda(settings, problem, context,
                      slices_of(problem.inputs[0].shape,
                                statistics_axes(settings, problem.inputs[0].shape))) {}

  std::size_t scratch_bytes() const override {
    if (is_empty_ || road_.whole) return 0;
    return partial_bytes() + sizeof(Scale) * static_cast<std::size_t>(slice_count());
  }

  void run(std::span<const ArrayView> sources, std::span<const ArrayView> outputs,
           const Launch& launch) override {
    if (is_empty_ || outputs[0].data == nullptr) return;
    const void* const load = load_.parameter(sources).data();
    const void* const store = store_.parameter(sources, outputs[0].data).data();
    const Work& work = road_.work;
    const cuda::Dim3 block{static_cast<unsigned>(road_.threads)};
    if (road_.whole) {
      const int teams = road_.threads / road_.team;
      slices_kernel_->launch(launch.stream, grid_of(ceil_div(work.units(), teams)), block, 0,
                             {load, store, &work, &settings_});
      return;
    }
    void* const partials = launch.scratch;
    void* const scales = static_cast<char*>(launch.scratch) + partial_bytes();
    void* const done = done_.data();
    moments_kernel_->launch(launch.stream, grid_of(work.units()), block, 0,
                            {load, store, &partials, &scales, &done, &work, &settings_});
    apply_kernel_->launch_early(launch.stream, grid_of(apply_road_.work.units()), block, 0,
                                {load, store, &scales, &apply_road_.work, &settings_});
  }

 private:
  NormalizeCuda(const Normalize& settings, const Problem& problem, const Context& context,
                const Slices& slices)
      : is_empty_(count_of(problem.inputs[0].shape) == 0) {
    if (is_empty_) return;
    const ArraySpec& x = problem.inputs[0];
    load_ = expr::device_load("Load", problem.load(0), context);
    store_ = expr::device_store("Store", problem.store(), context);
    road_ = road_of(slices, x, load_.program, store_.program,
                    widest(load_.program, problem.stored().dtype));

    const std::string text = std::string(expr::kPackText) + load_.text + store_.text +
                             embedded::slices_cu + embedded::normalize_cu +
                             embedded::normalize_statistics_cu + embedded::normalize_results_cu;
    const auto kernel = [&](const char* name, const char* part, const Road& road) {
      std::vector<std::string> options;
      const auto define = [&](const char* key, std::int64_t value) {
        options.push_back(fmt::format("-D{}={}", key, value));
      };
      define("SLICES", road.whole);
      define("NARROW", is_narrow(x.dtype, problem.outputs[0].dtype));
      define("GIVEN_MEAN", settings.mean.has_value());
      define("GIVEN_STD", settings.std.has_value());
      define("EPSILON_PLACE", static_cast<std::int64_t>(settings.epsilon_place));
      define("V", road.pack);
      define("COLUMNS", road.has_columns());
      define("LINEAR", road.linear);
      define("ROW_AXIS", road.row_axis);
      define("RAGGED", road.ragged);
      define("THREADS", road.threads);
      define("BLOCKS", road.blocks());
      define("TEAM", road.team);
      define("PACKS", road.packs);
      define("EXACT", road.exact);
      return cuda::load_kernel({name, text + part, options}, context.device());
    };
    if (road_.whole) {
      slices_kernel_ = kernel("normalize_slices", embedded::normalize_slices_cu, road_);
    } else {
      apply_road_ = applying(road_);
      moments_kernel_ = kernel("normalize_moments", embedded::normalize_moments_cu, road_);
      apply_kernel_ = kernel("normalize_apply", embedded::normalize_apply_cu, apply_road_);
      const std::int64_t counters = road_.work.strips() * (road_.work.bundles + 1);
      done_ = upload(std::vector<std::uint32_t>(static_cast<std::size_t>(counters)), context);
    }

    const std::int64_t length = slices.length();
    settings_.epsilon = settings.epsilon;
    settings_.length = static_cast<double>(length);
    settings_.per_element = 1 / settings_.length;
    settings_.per_degree = length > settings.ddof ? 1 / static_cast<double>(length - settings.ddof)
                                                  : std::numeric_limits<double>::quiet_NaN();
    settings_.zero = settings.zero_std == ZeroStd::zero;
    if (settings.mean) settings_.mean = constant(*settings.mean, context);
    if (settings.std) settings_.std = constant(*settings.std, context);
  }

  std::int64_t slice_count() const { return road_.work.slices.groups * road_.work.columns; }
  std::size_t partial_bytes() const {
    const Work& work = road_.work;
    return kMomentsBytes *
           static_cast<std::size_t>((work.units() + work.strips() * work.bundles) * road_.width());
  }

  template <class T>
  static Array upload(const std::vector<T>& values, const Context& context) {
    Array array =
        copy_to(Array::from(Dims{static_cast<std::int64_t>(values.size())}, values), context);
    context.stream.synchronize();  // runs may come on other streams
    return array;
  }
  DeviceConstant constant(const Reals& given, const Context& context) {
    if (given.values.size() == 1) return {nullptr, 1, given.values[0]};
    tables_.push_back(upload(given.values, context));
    return {tables_.back().as<double>(), tables_.back().count(), 0};
  }

  bool is_empty_;
  expr::DeviceCode load_, store_;
  Road road_, apply_road_;
  Array done_;  // a counter for each strip, 0 between runs
  DeviceSettings settings_;
  std::vector<Array> tables_;
  std::shared_ptr<const cuda::Kernel> slices_kernel_, moments_kernel_, apply_kernel_;
};

}  // namespace

std::unique_ptr<Body> normalize_cuda(const Op& op, const Problem& problem, const Context& context) {
  return std::make_unique<NormalizeCuda>(op.settings<Normalize>(), problem, context);
}

}  // namespace forebay
