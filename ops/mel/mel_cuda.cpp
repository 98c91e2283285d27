#include <algorithm>

#include <forebay/array/cuda/device.h>
#include <forebay/array/cuda/kernel.h>
#include <forebay/array/require.h>
#include <forebay/ops/expr/device_code.h>
#include <forebay/ops/mel/mel.h>

namespace forebay::embedded {
extern const char* const mel_cu;
}

namespace forebay {
namespace {

constexpr std::int64_t kThreads = 256;
constexpr std::int64_t kMostRows = 32;          // of a block
constexpr std::int64_t kBlocks = 512;           // aimed at: enough to fill any GPU
constexpr std::int64_t kAimedBytes = 40 << 10;  // of a block's shared memory, for five at once
constexpr std::int64_t kMostBytes = 96 << 10;   // likewise: what every GPU has

/// How the rows of a shape are dealt out. What a band's sum is does not depend on it.
struct Shape {
  std::int64_t bins = 0, bands = 0, rows = 0;
  std::int64_t in_bytes = 4, out_bytes = 4;  ///< of an element in shared memory
  std::int64_t block = kMostRows;            ///< rows of it
  bool staged = true;

  std::int64_t blocks() const { return (rows + block - 1) / block; }
  std::int64_t shared_bytes() const {
    if (!staged) return 0;
    const std::int64_t sides = 16 * bins + 16 * ((bands + 5) / 4);
    return sides + block * ((bins | 1) * in_bytes + (bands | 1) * out_bytes);
  }
};

Shape shape_of(const Mel& settings, const ArraySpec& x) {
  Shape shape;
  shape.bins = x.shape[x.shape.rank - 1];
  shape.bands = settings.n_mels;
  shape.rows = count_of(x.shape) / shape.bins;
  shape.out_bytes = static_cast<std::int64_t>(size_of(x.dtype));
  shape.in_bytes = std::max<std::int64_t>(shape.out_bytes, 4);
  while (shape.block > 1 && (shape.shared_bytes() > kAimedBytes || shape.blocks() < kBlocks))
    shape.block /= 2;
  shape.staged = shape.shared_bytes() <= kMostBytes;
  return shape;
}

/// The first band of each of `count` threads of a row, and the end: about as many frequencies each.
std::vector<std::int32_t> shares_of(const MelSides& sides, std::int64_t count) {
  const auto bands = static_cast<std::int64_t>(sides.corners.size()) - 2;
  const std::int64_t first = sides.corners.front(), all = sides.corners.back() - first;
  std::vector<std::int32_t> shares;
  std::int64_t band = 0;
  for (std::int64_t share = 0; share < count; ++share) {
    // A band costs its own frequencies and, for its sum, about as much as two more.
    while (band < bands &&
           (sides.corners[static_cast<std::size_t>(band + 1)] - first + 2 * band) * count <
               (all + 2 * bands) * share)
      ++band;
    shares.push_back(static_cast<std::int32_t>(band));
  }
  shares.push_back(static_cast<std::int32_t>(bands));
  return shares;
}

/// As in mel.cu.
struct Work {
  const void* weights = nullptr;
  const void* corners = nullptr;
  const void* shares = nullptr;
  std::int64_t rows = 0;
};

class MelCuda final : public Body {
 public:
  MelCuda(const Mel& settings, const Problem& problem, const Context& context)
      : load_(expr::device_load("Load", problem.load(0), context)),
        store_(expr::device_store("Store", problem.store(), context)),
        shape_(shape_of(settings, problem.inputs[0])) {
    const std::string constants = fmt::format(
        "\nconstexpr int kRows = {}, kThreads = {}, kBins = {}, kBands = {};\n"
        "constexpr bool kStaged = {};\n",
        shape_.block, kThreads, shape_.bins, shape_.bands, shape_.staged);
    kernel_ = cuda::load_kernel(
        {"mel", expr::kPackText + load_.text + store_.text + constants + embedded::mel_cu, {}},
        context.device());
    upload(mel_sides(settings, problem.inputs[0]), context);
  }

  void run(std::span<const ArrayView> inputs, std::span<const ArrayView> outputs,
           const Launch& launch) override {
    const Work work{weights_.data(), corners_.data(), shares_.data(), shape_.rows};
    kernel_->launch(
        launch.stream, {static_cast<unsigned>(shape_.blocks())}, {static_cast<unsigned>(kThreads)},
        static_cast<std::size_t>(shape_.shared_bytes()),
        {load_.parameter(inputs).data(), store_.parameter(inputs, outputs[0].data).data(), &work});
  }

 private:
  void upload(const MelSides& sides, const Context& context) {
    const auto to_device = [&](const auto& values) {
      return copy_to(Array::from({static_cast<std::int64_t>(values.size())}, values), context);
    };
    std::vector<double> weights;
    for (const auto [falling, rising] : sides.weights)
      weights.insert(weights.end(), {falling, rising});
    weights_ = to_device(weights);
    corners_ = to_device(std::vector<std::int32_t>(sides.corners.begin(), sides.corners.end()));
    shares_ = to_device(shares_of(sides, kThreads / shape_.block));
    context.stream.synchronize();  // runs may come on other streams
  }

  expr::DeviceCode load_, store_;
  Shape shape_;
  std::shared_ptr<const cuda::Kernel> kernel_;
  Array weights_, corners_, shares_;
};

}  // namespace

std::unique_ptr<Body> mel_cuda(const Op& op, const Problem& problem, const Context& context) {
  return std::make_unique<MelCuda>(op.settings<Mel>(), problem, context);
}

}  // namespace forebay
