#include <algorithm>

#include <forebay/array/cuda/kernel.h>
#include <forebay/array/require.h>
#include <forebay/ops/expr/device_code.h>
#include <forebay/ops/expr/divisor.h>
#include <forebay/ops/sample_move.h>

namespace forebay::embedded {
extern const char* const sample_move_cu;
}  // namespace forebay::embedded

namespace forebay {
namespace {

constexpr std::int64_t kThreads = 256, kItems = 4;  // as in sample_move.cu
constexpr std::int64_t kMostPack = 8;               // elements
constexpr std::int64_t kPackBytes = 16;             // of narrow ones
constexpr std::int64_t kMostRun = 4;                // channels of a pixel

/// As in sample_move.cu.
struct Move {
  struct Axis {
    SampleMove::Axis axis;
    expr::Divisor by_out{1, false};
  };
  Axis axes[SampleMove::kMaxAxes];
  std::int64_t rank, inner, in_elements, out_elements;
  std::uint64_t sequence;
  std::int64_t blocks, total;
  expr::Divisor by_line{1, false}, by_inner{1, false};
};

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

class MoveCuda final : public Body {
 public:
  MoveCuda(const SampleMove& move, const Fill& fill, const Problem& problem, const Context& context)
      : fill_(fill),
        load_(expr::device_load("load_x", problem.load(0), context)),
        store_(expr::device_store("store_out", problem.store(), context)) {
    std::tie(ids_, position_) = draw_sources(problem);
    const std::int64_t line = move.line().out * move.inner;
    const auto widest = static_cast<std::int64_t>(
        std::max(size_of(problem.inputs[0].dtype), size_of(problem.stored().dtype)));
    std::int64_t pack = std::max(kMostPack, kPackBytes / widest);
    while (pack > 1 && line % pack != 0)
      pack /= 2;
    const std::int64_t run = move.inner % pack == 0   ? pack
                             : move.inner <= kMostRun ? move.inner
                                                      : 0;
    std::int64_t reach = std::max(move.in_elements, move.out_elements);
    for (std::int64_t k = 0; k < move.rank; ++k)  // places beyond the ends, too
      reach = std::max(
          reach, 2 * (move.axes[k].padding + move.axes[k].places + move.axes[k].out) * move.inner);
    const bool wide = reach > INT32_MAX / 2;
    const auto divisor = [&](std::int64_t d) {
      return expr::Divisor(std::max<std::int64_t>(d, 1), wide);
    };
    for (std::int64_t k = 0; k < move.rank; ++k)
      q_.axes[k] = {move.axes[k], divisor(move.axes[k].out)};
    q_.rank = move.rank;
    q_.inner = move.inner;
    q_.in_elements = move.in_elements;
    q_.out_elements = move.out_elements;
    q_.sequence = move.sequence;
    q_.blocks = ceil_div(move.out_elements / pack, kThreads * kItems);
    q_.total = move.samples * move.in_elements;
    q_.by_line = divisor(line);
    q_.by_inner = divisor(move.inner);
    blocks_ = move.samples * q_.blocks;
    FOREBAY_REQUIRE(
        blocks_ <= INT32_MAX, unsupported,
        "{} samples of {} elements are more than one launch moves; use smaller batches.",
        move.samples, move.out_elements);
    kernel_ =
        cuda::load_kernel({"move_samples",
                           expr::kPackText + load_.text + store_.text + embedded::sample_move_cu,
                           {fmt::format("-DINDEX={}", wide ? "i64" : "i32"),
                            fmt::format("-DPACK={}", pack), fmt::format("-DRUN={}", run)}},
                          context.device());
  }

  void run(std::span<const ArrayView> inputs, std::span<const ArrayView> outputs,
           const Launch& launch) override {
    const auto load = load_.parameter(inputs);
    const auto store = store_.parameter(inputs, outputs[0].data);
    const void* ids = inputs[ids_].data;
    const void* position = inputs[position_].data;
    kernel_->launch(launch.stream, {static_cast<unsigned>(blocks_)},
                    {static_cast<unsigned>(kThreads)}, 0,
                    {load.data(), store.data(), &ids, &position, &fill_, &q_});
  }

 private:
  Fill fill_;
  expr::DeviceCode load_, store_;
  std::size_t ids_ = 1, position_ = 2;
  Move q_;
  std::int64_t blocks_ = 0;
  std::shared_ptr<const cuda::Kernel> kernel_;
};

}  // namespace

std::unique_ptr<Body> move_samples_cuda(const SampleMove& move, const Fill& fill,
                                        const Problem& problem, const Context& context) {
  return std::make_unique<MoveCuda>(move, fill, problem, context);
}

}  // namespace forebay
