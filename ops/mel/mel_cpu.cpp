#include <algorithm>

#include <forebay/array/dispatch.h>
#include <forebay/array/parallel.h>
#include <forebay/ops/expr/tile.h>
#include <forebay/ops/mel/mel.h>

namespace forebay {
namespace {

constexpr std::int64_t kTogether = 8;     // rows whose sums do not wait for each other
constexpr std::int64_t kElements = 8192;  // on their way in at once, about

template <class T>
double widened(T x) {
  if constexpr (std::is_same_v<T, double>) {
    return x;
  } else {
    return static_cast<double>(static_cast<float>(x));
  }
}

/// The bands of `Rows` rows of x. In the order of the frequencies, as mel.cu: the same bits.
template <int Rows, class T>
void sum_bands(const MelSides& sides, const T* x, T* out) {
  const auto bins = static_cast<std::int64_t>(sides.weights.size());
  const auto bands = static_cast<std::int64_t>(sides.corners.size()) - 2;
  double falling[Rows] = {}, rising[Rows] = {};
  for (std::int64_t i = 0; i <= bands; ++i) {
    const auto corner = sides.corners.begin() + i;
    for (std::int64_t k = corner[0]; k < corner[1]; ++k) {
      const MelSides::Weights weights = sides.weights[static_cast<std::size_t>(k)];
      for (int row = 0; row < Rows; ++row) {
        const double value = widened(x[row * bins + k]);
        falling[row] += value * weights.falling;
        rising[row] += value * weights.rising;
      }
    }
    for (int row = 0; row < Rows; ++row) {
      if (i > 0) out[row * bands + i - 1] = static_cast<T>(falling[row]);
      falling[row] = rising[row];
      rising[row] = 0;
    }
  }
}

template <class T>
class MelCpu final : public Body {
 public:
  MelCpu(const Mel& settings, const Problem& problem)
      : sides_(mel_sides(settings, problem.inputs[0])),
        bins_(static_cast<std::int64_t>(sides_.weights.size())),
        bands_(settings.n_mels),
        rows_(count_of(problem.inputs[0].shape) / bins_),
        rows_at_once_(std::max<std::int64_t>(kElements / bins_ / kTogether, 1) * kTogether),
        load_(problem.load(0)),
        store_(problem.store()) {}

  void run(std::span<const ArrayView> inputs, std::span<const ArrayView> outputs,
           const Launch&) override {
    parallel_for(rows_, rows_at_once_, [&](std::int64_t begin, std::int64_t end) {
      const std::int64_t most = std::min(rows_at_once_, end - begin);
      const auto room = std::make_unique_for_overwrite<T[]>(
          static_cast<std::size_t>(load_.is_plain() ? 0 : most * bins_));
      const auto result = std::make_unique_for_overwrite<T[]>(
          static_cast<std::size_t>(store_.is_plain() ? 0 : most * bands_));
      for (std::int64_t row = begin; row < end; row += rows_at_once_) {
        const std::int64_t rows = std::min(rows_at_once_, end - row);
        const void* x = load_.load(inputs, row * bins_, rows * bins_, room.get());
        if (store_.is_plain()) {
          sum_rows(static_cast<const T*>(x), rows, outputs[0].as<T>() + row * bands_);
        } else {
          sum_rows(static_cast<const T*>(x), rows, result.get());
          store_.store(result.get(), inputs, row * bands_, rows * bands_, outputs[0].data);
        }
      }
    });
  }

 private:
  void sum_rows(const T* x, std::int64_t rows, T* out) const {
    std::int64_t row = 0;
    for (; row + kTogether <= rows; row += kTogether)
      sum_bands<kTogether>(sides_, x + row * bins_, out + row * bands_);
    for (; row < rows; ++row)
      sum_bands<1>(sides_, x + row * bins_, out + row * bands_);
  }

  MelSides sides_;
  std::int64_t bins_, bands_, rows_, rows_at_once_;
  expr::Tile load_, store_;
};

}  // namespace

std::unique_ptr<Body> mel_cpu(const Op& op, const Problem& problem, const Context&) {
  std::unique_ptr<Body> body;
  dispatch(
      Types<Half, BFloat16, float, double>{}, problem.inputs[0].dtype, "mel", "x",
      [&]<class T>(Type<T>) { body = std::make_unique<MelCpu<T>>(op.settings<Mel>(), problem); });
  return body;
}

}  // namespace forebay
