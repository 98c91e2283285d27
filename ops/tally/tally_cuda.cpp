#include <algorithm>

#include <forebay/array/cuda/kernel.h>
#include <forebay/array/require.h>
#include <forebay/ops/expr/device_code.h>
#include <forebay/ops/histogram/count_shape.h>
#include <forebay/ops/tally/bins.h>
#include <forebay/ops/tally/tally.h>

namespace forebay::embedded {
extern const char* const slices_cu;
extern const char* const histogram_runs_cu;
extern const char* const tally_cu;
}  // namespace forebay::embedded

namespace forebay {
namespace {

constexpr std::int64_t kMostBlocks = 1 << 20;       // of a grid; the kernel loops over the rest
constexpr std::int64_t kSharedCounters = 8 * 1024;  // of a block: several blocks fit

/// Copies of the counters of values of 8 bits: a lane each, where that does not take too many.
std::int64_t copies_of(Dtype x, std::int64_t columns, std::int64_t bins) {
  if (size_of(x) > 1) return 0;
  std::int64_t copies = 32;
  while (copies > 1 && copies * columns * bins > kSharedCounters)
    copies /= 2;
  return copies;
}

/// The bins of each sign that are added up in shared memory.
struct Window {
  std::int64_t bins = 0;  ///< none: they are not
  std::int64_t half = 0, signs = 1;
  std::int64_t parts = 1;  ///< numbers of 32 bits a bin
};

constexpr std::int64_t kWindowBytes = 128 * 1024, kWindowBlock = 768;
constexpr std::int64_t kMostInUnit = 57344;  // as in tally.cu
constexpr std::int64_t kFewestOctaves = 8;   // of floats, of each sign, to be worth it

Window window_of(const TallyBins& bins, Dtype x, const Slices& slices,
                 const histogram_detail::CountShape& shape) {
  const bool worth = size_of(x) > 1 && slices.length() >= kMostInUnit &&
                     (!shape.runs || slices.rows <= kMostInUnit);
  if (!worth) return {};
  Window window;
  window.signs = is_float(x) || (is_signed(x) && size_of(x) > 2) ? 2 : 1;
  window.half = bins.count() / window.signs;  // without the last of floats, which is NaN's
  const int halves = (bins.low_bits() + 15) / 16 + (2 * bins.low_bits() + 15) / 16;
  window.parts = 1 + halves;
  window.bins =
      std::min(window.half, kWindowBytes / (4 * window.parts * window.signs * shape.tiling.chunk));
  const std::int64_t octave = size_of(x) == 2 ? 1024 : std::int64_t{1} << bins.bits();
  if (window.bins < (is_float(x) ? kFewestOctaves : 1) * octave) return {};
  return window;
}

/// Units as large as a window's counts allow, for as many blocks as fit.
void widen(histogram_detail::CountShape& shape, const Slices& slices, Dtype x) {
  shape.block = shape.team = kWindowBlock;
  shape.depth = std::min<std::int64_t>(shape.depth, 2);  // what the registers hold
  const std::int64_t round =
      shape.depth * kWindowBlock * static_cast<std::int64_t>(16 / size_of(x));  // of a run
  const std::int64_t unit = shape.runs ? slices.rows : shape.columns ? 1 : round;
  shape.tiling = tile(slices, shape.tiling.chunk, kMostInUnit / unit * unit);
}

class TallyCuda final : public Body {
 public:
  TallyCuda(const Tally& settings, const Problem& problem, const Context& context)
      : slices_(slices_of(problem.inputs[0].shape,
                          tally_detail::counted_axes(settings, problem.inputs[0].shape))),
        load_(expr::device_load("LoadX", problem.load(0), context)) {
    const Dtype x = problem.inputs[0].dtype;
    const TallyBins bins(x, settings.bits);
    histogram_detail::CountShape shape = histogram_detail::extremes_shape(slices_, x);
    const Window window = window_of(bins, x, slices_, shape);
    if (window.bins > 0) widen(shape, slices_, x);
    tiling_ = shape.tiling;
    block_ = static_cast<unsigned>(shape.block);
    const std::int64_t copies = copies_of(x, tiling_.chunk, bins.count());
    const std::int64_t counters =
        window.bins > 0 ? window.bins * window.signs * window.parts : copies * bins.count();
    shared_bytes_ = static_cast<std::size_t>(counters * tiling_.chunk) * sizeof(std::uint32_t);

    std::vector<std::string> options = shape.options();
    const auto option = [&](const char* name, std::int64_t value) {
      options.push_back(fmt::format("-D{}={}", name, value));
    };
    option("BINS", bins.count());
    option("LEADING", bins.bits());
    option("LOW", bins.low_digits());
    option("SQUARE", bins.square_digits());
    option("COUNTED", copies);
    option("WINDOW", window.bins);
    option("HALF", window.half);
    option("SIGNS", window.signs);
    option("LOW_BITS", bins.low_bits());
    kernel_ = cuda::load_kernel(
        {"tally",
         expr::kPackText + load_.text + embedded::slices_cu + "using Value = LoadX::Value;\n" +
             embedded::histogram_runs_cu + embedded::tally_cu,
         options},
        context.device());
    if (window.bins > 0)
      most_blocks_ = kernel_->resident_blocks(static_cast<int>(block_), shared_bytes_);
  }

  void run(std::span<const ArrayView> inputs, std::span<const ArrayView> outputs,
           const Launch& launch) override {
    for (const ArrayView& output : outputs) {
      if (output.data != nullptr) fill_bytes(output, 0, launch.stream);
    }
    const std::int64_t blocks = std::min(tiling_.units(slices_), most_blocks_);
    kernel_->launch(
        launch.stream, {static_cast<unsigned>(blocks)}, {block_}, shared_bytes_,
        {load_.parameter(inputs).data(), &outputs[0].data, &outputs[1].data, &slices_, &tiling_});
  }

 private:
  Slices slices_;
  Tiling tiling_;
  unsigned block_ = 0;
  std::int64_t most_blocks_ = kMostBlocks;
  std::size_t shared_bytes_ = 0;
  expr::DeviceCode load_;
  std::shared_ptr<const cuda::Kernel> kernel_;
};

}  // namespace

std::unique_ptr<Body> tally_cuda(const Op& op, const Problem& problem, const Context& context) {
  return std::make_unique<TallyCuda>(op.settings<Tally>(), problem, context);
}

}  // namespace forebay
