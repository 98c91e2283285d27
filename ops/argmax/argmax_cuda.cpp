#include <algorithm>

#include <forebay/array/cuda/kernel.h>
#include <forebay/array/require.h>
#include <forebay/ops/argmax/argmax.h>

namespace forebay::embedded {
extern const char* const slices_cu;
extern const char* const argmax_cu;
}  // namespace forebay::embedded

namespace forebay {
namespace {

constexpr std::int64_t kThreads = 256;
constexpr std::int64_t kWarp = 32;
constexpr std::int64_t kItems = 4;             // elements of a lane, at least, where there are many
constexpr std::int64_t kManyItems = 32;        // where many slices have a warp each already
constexpr std::int64_t kUnitItems = 16;        // of a lane when a slice is cut
constexpr std::int64_t kManySlices = 1 << 13;  // a warp for each fills any GPU
constexpr std::int64_t kUnits = 1024;          // aimed at: enough to fill any GPU
constexpr std::int64_t kMostBlocks = 1 << 20;  // of a grid; the kernel loops over the rest

/// As in argmax.cu.
struct Search {
  std::int64_t rows = 1, columns = 1, slices = 0;
  std::int64_t count = 1;
  std::int64_t block = 1, blocks = 1;
  std::int64_t units = 0, lanes = 1;
  std::int64_t packed = 0;

  cuda::Dim3 grid() const { return {static_cast<unsigned>(std::min(units, kMostBlocks))}; }
};

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Neighbouring columns fill a warp first; as many lanes as the places keep busy, each with a pack,
/// share a slice.
std::int64_t lanes_for(const Search& search, std::int64_t pack) {
  std::int64_t most = kThreads;
  for (std::int64_t side = 1; side < std::min(search.columns, kWarp); side *= 2)
    most /= 2;
  const bool many = search.slices > kManySlices;
  const auto items = [&](std::int64_t lanes) {
    return std::max(pack, many && lanes >= kWarp ? kManyItems : kItems);
  };
  std::int64_t lanes = 1;
  while (lanes < most && lanes * items(lanes) < search.count)
    lanes *= 2;
  return lanes;
}

/// Blocks that it takes for a team on each slice.
std::int64_t strips_of(const Search& search) {
  return ceil_div(search.slices, kThreads / search.lanes);
}

class ArgmaxCuda final : public Body {
 public:
  ArgmaxCuda(const Slices& slices, Dtype x, const Context& context) {
    search_.rows = search_.count = slices.rows;
    search_.columns = slices.columns;
    search_.slices = slices.count();
    const auto pack = static_cast<std::int64_t>(16 / size_of(x));
    whole_packs_ = search_.columns == 1 && search_.count % pack == 0;
    search_.lanes = lanes_for(search_, whole_packs_ ? pack : 1);
    const std::int64_t strips = strips_of(search_);
    const std::int64_t wanted = ceil_div(kUnits, std::max<std::int64_t>(1, strips));
    search_.block = std::max(ceil_div(search_.count, wanted), kUnitItems * search_.lanes);
    search_.block = ceil_div(search_.block, pack) * pack;
    search_.blocks = ceil_div(search_.count, search_.block);
    search_.units = strips * search_.blocks;

    merge_ = search_;
    merge_.count = merge_.block = search_.blocks;
    merge_.blocks = 1;
    merge_.lanes = lanes_for(merge_, 1);
    merge_.units = strips_of(merge_);

    const Dtype key = x == Dtype::f16 || x == Dtype::bf16 ? Dtype::f32 : x;
    kernel_ = cuda::load_kernel(
        {"argmax",
         std::string(embedded::slices_cu) + embedded::argmax_cu,
         {fmt::format("-DIN={}", name_of(x)), fmt::format("-DKEY={}", name_of(key))}},
        context.device());
  }

  std::size_t scratch_bytes() const override {
    return search_.blocks == 1
               ? 0
               : sizeof(std::int64_t) * static_cast<std::size_t>(search_.blocks * search_.slices);
  }

  void run(std::span<const ArrayView> inputs, std::span<const ArrayView> outputs,
           const Launch& launch) override {
    const void* x = inputs[0].data;
    search_.packed = whole_packs_ && reinterpret_cast<std::uintptr_t>(x) % 16 == 0;
    const void* none = nullptr;
    void* out = outputs[0].data;
    void* found = search_.blocks == 1 ? out : launch.scratch;
    const cuda::Dim3 block{static_cast<unsigned>(kThreads)};
    kernel_->launch(launch.stream, search_.grid(), block, 0, {&x, &none, &found, &search_});
    if (search_.blocks > 1)
      kernel_->launch(launch.stream, merge_.grid(), block, 0, {&x, &found, &out, &merge_});
  }

 private:
  Search search_, merge_;     ///< merge: among what the units of a cut slice found
  bool whole_packs_ = false;  ///< where x begins at a multiple of 16 bytes
  std::shared_ptr<const cuda::Kernel> kernel_;
};

}  // namespace

std::unique_ptr<Body> argmax_cuda(const Op& op, const Problem& problem, const Context& context) {
  const ArraySpec& x = problem.inputs[0];
  return std::make_unique<ArgmaxCuda>(
      argmax_detail::searched_slices(op.settings<Argmax>(), x.shape), x.dtype, context);
}

}  // namespace forebay
