#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <forebay/integrations/torch/torch.h>

// A pipeline where a torch::data loader was, and a torch::data dataset as the source of a pipeline.
// Include <torch/torch.h> (or <torch/data.h>) beside it.

namespace torch::data {
template <typename Data, typename Target>
struct Example;
}  // namespace torch::data

namespace forebay::torch {

/// What the parts of a `torch::data::Example` are called in a pipeline.
struct ExampleFields {
  std::string data = "data";
  std::string target = "target";  ///< unused by an Example without a target
};

namespace detail {

/// Errors: invalid, with the names there are, when `pipeline` does not deliver `fields`.
void check_fields(const Pipeline& pipeline, const ExampleFields& fields, bool has_target);

/// One copy of a dataset: it is in one thread at a time.
class Examples {
 public:
  /// Writes one sample, or several stacked ones; `target` is null where examples have none.
  using Take = std::function<void(const at::Tensor& data, const at::Tensor* target)>;
  virtual ~Examples() = default;
  virtual std::unique_ptr<Examples> copy() const = 0;
  virtual std::optional<std::size_t> size() const = 0;
  /// Calls `take` for the examples at `indices`, in order.
  virtual void read(std::span<const std::size_t> indices, const Take& take) = 0;
};

/// `stacked`: `take` gets tensors of [indices, ...].
SourcePtr source_of(std::unique_ptr<Examples> examples, const ExampleFields& fields,
                    bool has_target, bool stacked);

template <class T>
struct ElementOf {
  using type = T;
};
template <class T>
struct ElementOf<std::vector<T>> {
  using type = T;
};

template <class Dataset>
class ExamplesOf final : public Examples {
 public:
  using Batch = typename Dataset::BatchType;
  using Example = typename ElementOf<Batch>::type;
  static constexpr bool kStacked = std::is_same_v<Batch, Example>;
  static constexpr bool kHasTarget = !std::is_void_v<typename Example::TargetType>;

  explicit ExamplesOf(Dataset dataset) : dataset_(std::move(dataset)) {}
  std::unique_ptr<Examples> copy() const override { return std::make_unique<ExamplesOf>(dataset_); }
  std::optional<std::size_t> size() const override { return dataset_.size(); }

  void read(std::span<const std::size_t> indices, const Take& take) override {
    typename Dataset::BatchRequestType request(indices.data(), indices.size());
    const Batch batch = dataset_.get_batch(request);
    if constexpr (kStacked) {
      give(batch, take);
    } else {
      for (const Example& example : batch)
        give(example, take);
    }
  }

 private:
  static void give(const Example& example, const Take& take) {
    if constexpr (kHasTarget) {
      take(example.data, &example.target);
    } else {
      take(example.data, nullptr);
    }
  }
  Dataset dataset_;
};

}  // namespace detail

/// A pipeline as a `torch::data` loader: each `begin()` starts the next epoch, the first one where
/// the pipeline stands, and gives `Example`s of whole batches. See `make_data_loader`.
template <class Example>
class DataLoader {
 public:
  using BatchType = Example;
  static constexpr bool kHasTarget = !std::is_void_v<typename Example::TargetType>;

  DataLoader(Pipeline& pipeline, ExampleFields fields)
      : pipeline_(&pipeline), fields_(std::move(fields)) {
    detail::check_fields(pipeline, fields_, kHasTarget);
  }

  struct End {};
  class Iterator {
   public:
    explicit Iterator(const DataLoader* loader) : loader_(loader) { ++*this; }
    Example& operator*() { return *example_; }
    Example* operator->() { return &*example_; }
    Iterator& operator++() {
      example_.reset();  // the slot goes back before the next batch is waited for
      if (const auto batch = next(*loader_->pipeline_)) example_ = loader_->example_of(*batch);
      return *this;
    }
    bool operator!=(End) const { return example_.has_value(); }
    bool operator==(End) const { return !example_.has_value(); }

   private:
    const DataLoader* loader_;
    std::optional<Example> example_;
  };

  Iterator begin() {
    epoch_ = epoch_ ? *epoch_ + 1 : pipeline_->position().epoch;
    pipeline_->start_epoch(*epoch_);
    return Iterator(this);
  }
  End end() const { return {}; }

 private:
  Example example_of(const TensorBatch& batch) const {
    if constexpr (kHasTarget) {
      return {batch[fields_.data], batch[fields_.target]};
    } else {
      return {batch[fields_.data]};
    }
  }

  Pipeline* pipeline_;
  ExampleFields fields_;
  std::optional<std::int64_t> epoch_;
};

/// `pipeline`, which must outlive it, where `torch::data::make_data_loader` was:
///
///     auto loader = forebay::torch::make_data_loader(pipeline, {.data = "image", .target = "label"});
///     for (int epoch = 0; epoch < 5; ++epoch)
///       for (auto& batch : *loader) train(batch.data, batch.target);
///
/// An example holds two of the batch's tensors, [rows, ...], on the pipeline's device; nothing is
/// copied, and what `TensorBatch` says of streams and of slots holds for them. Batch size, order,
/// epochs and resume are the pipeline's: after `restore` the first loop goes on there. Each loop is
/// an epoch, also behind one that was left early. `make_data_loader<::torch::data::TensorExample>`
/// gives examples without a target. What an Example has no place for, such as `real_rows()`, only
/// `batches` gives. Errors: invalid for a field that the pipeline does not deliver; those of `next`.
template <class Example = ::torch::data::Example<at::Tensor, at::Tensor>>
std::unique_ptr<DataLoader<Example>> make_data_loader(Pipeline& pipeline,
                                                      const ExampleFields& fields = {}) {
  return std::make_unique<DataLoader<Example>>(pipeline, fields);
}

/// The examples of a `torch::data` dataset as samples: columns `fields.data` and, unless they are
/// `TensorExample`s, `fields.target`. Anything with `size()` and access by index will do: datasets
/// with `get`, batch datasets, and both behind `.map(...)`, also behind `.map(Stack<>())`. Shapes
/// and dtypes are those of the first example; every other must have them. Tensors on a GPU are
/// copied to the host. As LibTorch's loader does, each reader has a copy of the dataset of its own,
/// so `get` need not be safe for threads; it must give the same for the same index, or a resumed run
/// is refused. The fingerprint is that of some samples, as for `array_source`.
/// Errors: invalid for a dataset without a size or without examples; while reading, invalid with the
/// sample and what it has for another shape or dtype, and what the dataset throws (kind io).
template <class Dataset>
SourcePtr dataset_source(Dataset dataset, const ExampleFields& fields = {}) {
  static_assert(
      !Dataset::is_stateful && !std::is_same_v<typename Dataset::BatchRequestType, std::size_t>,
      "a stateful or stream dataset has no examples by index, which a source needs");
  using Examples = detail::ExamplesOf<Dataset>;
  return detail::source_of(std::make_unique<Examples>(std::move(dataset)), fields,
                           Examples::kHasTarget, Examples::kStacked);
}

}  // namespace forebay::torch
