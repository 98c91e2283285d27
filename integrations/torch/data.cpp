#include <forebay/integrations/torch/data.h>

#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <mutex>

#include <forebay/array/require.h>
#include <forebay/pipeline/mistakes.h>
#include <forebay/pipeline/source/columns.h>

namespace forebay::torch::detail {

void check_fields(const Pipeline& pipeline, const ExampleFields& fields, bool has_target) {
  std::vector<std::string> names;
  for (const PlanOutput& output : pipeline.plan().outputs)
    names.push_back(output.name);
  const auto check = [&](const char* part, const std::string& name) {
    FOREBAY_REQUIRE(std::find(names.begin(), names.end(), name) != names.end(), invalid,
                    "make_data_loader: `{}` is `{}`, but the pipeline delivers {}. Name one of "
                    "those.",
                    part, name, quoted(names));
  };
  check("data", fields.data);
  if (has_target) check("target", fields.target);
}

namespace {

at::ScalarType scalar_type_of(Dtype dtype) {
  return to_tensor(Array::empty({}, dtype, Context::create(Device::cpu(), 1))).scalar_type();
}

class DatasetSource final : public Source {
 public:
  DatasetSource(std::unique_ptr<Examples> examples, const ExampleFields& fields, bool has_target,
                bool stacked)
      : stacked_(stacked) {
    const auto size = examples->size();
    FOREBAY_REQUIRE(size.has_value(), invalid,
                    "dataset_source: the dataset does not know its size; a source needs one.");
    FOREBAY_REQUIRE(
        *size > 0, invalid,
        "dataset_source: the dataset is empty; shapes and dtypes are those of its first "
        "example.");
    size_ = static_cast<std::int64_t>(*size);
    const std::size_t first = 0;
    examples->read({&first, 1}, [&](const at::Tensor& data, const at::Tensor* target) {
      add_column(fields.data, data);
      if (has_target) add_column(fields.target, *target);
    });
    check_columns("dataset_source", columns_);
    idle_.push_back(std::move(examples));
  }

  std::int64_t size() const override { return size_; }
  const std::vector<Column>& columns() const override { return columns_; }
  std::string fingerprint() const override { return hash_of_samples(*this); }
  std::string describe() const override {
    return columns_.size() == 1
               ? fmt::format("torch::data dataset {}", columns_[0].name)
               : fmt::format("torch::data dataset {}, {}", columns_[0].name, columns_[1].name);
  }

  void read(std::span<const std::int64_t> indices,
            std::span<const ArrayView> targets) const override {
    if (indices.empty()) return;
    const std::vector<std::size_t> wanted(indices.begin(), indices.end());
    std::unique_ptr<Examples> examples = take();
    std::size_t done = 0;
    const auto write = [&](const at::Tensor& data, const at::Tensor* target) {
      FOREBAY_REQUIRE(done < wanted.size(), invalid,
                      "the dataset gave more examples than the {} that it was asked for.",
                      wanted.size());
      this->write(data, 0, targets[0], done, indices);
      if (target != nullptr) this->write(*target, 1, targets[1], done, indices);
      done += stacked_ ? wanted.size() : 1;
    };
    try {
      const c10::NoGradGuard no_grad;
      examples->read(wanted, write);
    } catch (const c10::Error& error) {
      fail(ErrorKind::io, "{}", error.what_without_backtrace());
    }
    FOREBAY_REQUIRE(done == wanted.size(), invalid,
                    "the dataset gave {} examples of the {} that it was asked for.", done,
                    wanted.size());
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(examples));
  }

 private:
  void add_column(const std::string& name, const at::Tensor& first) {
    FOREBAY_REQUIRE(!stacked_ || first.dim() > 0, invalid,
                    "dataset_source: `{}` of a stacked batch has rank 0; axis 0 must run over the "
                    "examples.",
                    name);
    const Array sample = to_array(stacked_ ? first[0] : first);
    columns_.push_back({name, sample.dtype(), sample.shape()});
    types_.push_back(scalar_type_of(sample.dtype()));
  }

  /// A copy of the dataset for this thread; there come to be as many as there are readers.
  std::unique_ptr<Examples> take() const {
    const std::lock_guard lock(mutex_);
    if (idle_.size() == 1) return idle_.back()->copy();
    std::unique_ptr<Examples> examples = std::move(idle_.back());
    idle_.pop_back();
    return examples;
  }

  /// Writes `tensor`, sample `indices[row]` or all of them stacked, to `target`.
  void write(const at::Tensor& tensor, std::size_t c, const ArrayView& target, std::size_t row,
             std::span<const std::int64_t> indices) const {
    const Column& column = columns_[c];
    std::vector<std::int64_t> shape(column.shape.begin(), column.shape.end());
    if (stacked_) shape.insert(shape.begin(), static_cast<std::int64_t>(indices.size()));
    FOREBAY_REQUIRE(tensor.defined(), invalid, "sample {}: `{}` is an undefined tensor.",
                    indices[row], column.name);
    FOREBAY_REQUIRE(tensor.sizes() == shape && tensor.scalar_type() == types_[c], invalid,
                    "sample {}: `{}` is {} {}; by sample 0 it must be {} {}. All samples must be "
                    "alike.",
                    indices[row], column.name, c10::toString(tensor.scalar_type()),
                    text_of(tensor.sizes()), c10::toString(types_[c]), text_of(shape));
    auto* to = static_cast<std::byte*>(target.data) + row * sample_bytes(column);
    at::from_blob(to, shape, types_[c]).copy_(tensor);
  }

  static std::string text_of(at::IntArrayRef sizes) {
    std::string text;
    for (const std::int64_t extent : sizes)
      text += fmt::format("{}{}", text.empty() ? "" : ", ", extent);
    return fmt::format("({}{})", text, sizes.size() == 1 ? "," : "");
  }

  std::int64_t size_ = 0;
  bool stacked_;
  std::vector<Column> columns_;
  std::vector<at::ScalarType> types_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Examples>> idle_;  ///< never empty: one to copy from
};

}  // namespace

SourcePtr source_of(std::unique_ptr<Examples> examples, const ExampleFields& fields,
                    bool has_target, bool stacked) {
  return std::make_shared<DatasetSource>(std::move(examples), fields, has_target, stacked);
}

}  // namespace forebay::torch::detail
