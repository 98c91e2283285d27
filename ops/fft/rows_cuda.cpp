#include <algorithm>

#include <forebay/ops/fft/rows.h>

namespace forebay::embedded {
extern const char* const fft_points_cu;
extern const char* const fft_rows_cu;
}

namespace forebay::dft {
namespace {

/// The twiddles on the device of `context`.
template <class R>
Array upload(const std::vector<std::complex<double>>& roots, const Context& context) {
  std::vector<std::complex<R>> rounded(roots.begin(), roots.end());
  if (rounded.empty()) rounded.emplace_back();
  const Array host = Array::from({static_cast<std::int64_t>(rounded.size())}, rounded);
  Array device = copy_to(host, context);
  context.stream.synchronize();  // runs may come on other streams
  return device;
}

/// One kernel: reads x through what is fused before, transforms a row on chip, writes through what is fused behind.
class RowsBody final : public Body {
 public:
  RowsBody(const Transform& transform, const Problem& problem, const Context& context)
      : t_(transform),
        plan_(plan_rows(transform, size_of(problem.stored().dtype))),
        load_(expr::device_load("Load", problem.load(0), context)),
        store_(expr::device_store("Store", problem.store(), context)) {
    kernel_ = cuda::load_kernel(rows_kernel(t_, plan_, load_, store_), context.device());
    const auto roots = row_roots(t_, plan_);
    roots_ = t_.real == Dtype::f64 ? upload<double>(roots, context) : upload<float>(roots, context);
  }

  void run(std::span<const ArrayView> inputs, std::span<const ArrayView> outputs,
           const Launch& launch) override {
    const std::int64_t rows = t_.rows();
    const std::int64_t blocks = (rows + plan_.rows - 1) / plan_.rows;
    const void* roots = roots_.data();
    kernel_->launch(launch.stream, {static_cast<unsigned>(blocks)},
                    {static_cast<unsigned>(plan_.rows * plan_.threads)}, 0,
                    {load_.parameter(inputs).data(),
                     store_.parameter(inputs, outputs[0].data).data(), &roots, &rows});
  }

 private:
  Transform t_;
  RowsPlan plan_;
  expr::DeviceCode load_, store_;
  std::shared_ptr<const cuda::Kernel> kernel_;
  Array roots_;
};

}  // namespace

cuda::KernelSource rows_kernel(const Transform& transform, const RowsPlan& plan,
                               const expr::DeviceCode& load, const expr::DeviceCode& store) {
  const RowsSource source = rows_source(transform, plan);
  return {"fft_rows",
          expr::kPackText + load.text + store.text + "\n" + source.constants +
              embedded::fft_points_cu + embedded::fft_rows_cu + source.kernel,
          {}};
}

std::unique_ptr<Body> prepare_rows(const Transform& transform, const Problem& problem,
                                   const Context& context) {
  return std::make_unique<RowsBody>(transform, problem, context);
}

}  // namespace forebay::dft
