// A pipeline where a torch::data loader was, and a torch::data dataset as the source of a pipeline.

#include <forebay/integrations/torch/data.h>

#include <torch/data.h>

#include <algorithm>
#include <numeric>

#include "kit/kit.h"

namespace forebay {
namespace {

namespace data = ::torch::data;

/// Sample i is a row of i, i + 0.5, .. and the label i.
class Rows : public data::datasets::Dataset<Rows> {
 public:
  explicit Rows(std::size_t count) : count_(count) {}
  data::Example<> get(std::size_t index) override {
    const auto i = static_cast<std::int64_t>(index);
    return {i + 0.5 * at::arange(4, at::kFloat), at::scalar_tensor(i, at::kLong)};
  }
  std::optional<std::size_t> size() const override { return count_; }

 private:
  std::size_t count_;
};

at::Tensor rows(const at::Tensor& ids) {
  return ids.unsqueeze(1).to(at::kFloat) + 0.5 * at::arange(4, at::kFloat);
}

/// As users write it for LibTorch's loaders: any loader, any device.
template <class Loader>
std::vector<std::int64_t> labels_of_an_epoch(Loader& loader) {
  std::vector<std::int64_t> labels;
  for (auto& batch : loader) {
    const at::Tensor target = batch.target.cpu();
    EXPECT_TRUE(batch.data.cpu().equal(rows(target)));
    labels.insert(labels.end(), target.template data_ptr<std::int64_t>(),
                  target.template data_ptr<std::int64_t>() + target.numel());
  }
  return labels;
}

std::vector<std::int64_t> up_to(std::int64_t count) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

std::vector<std::int64_t> sorted(std::vector<std::int64_t> values) {
  std::sort(values.begin(), values.end());
  return values;
}

class TorchData : public kit::DeviceTest {
 protected:
  template <class Dataset>
  Pipeline pipeline(Dataset dataset, int held = 16) const {
    return Pipeline::build()
        .source(torch::dataset_source(std::move(dataset), {.data = "row", .target = "label"}))
        .batch_size(8)
        .device(device())
        .shuffle(ShuffleMode::full)
        .max_held_batches(held)
        .create({.poison = true});
  }
  static constexpr std::int64_t kSamples = 60;
};

const torch::ExampleFields kFields = {.data = "row", .target = "label"};

DEVICE_TEST(TorchData, ALoopOverALoaderIsAnEpoch) {
  Pipeline pipeline = this->pipeline(Rows(kSamples));
  const auto loader = torch::make_data_loader(pipeline, kFields);
  const auto first = labels_of_an_epoch(*loader), second = labels_of_an_epoch(*loader);
  EXPECT_EQ(sorted(first), up_to(kSamples));
  EXPECT_EQ(sorted(second), up_to(kSamples));
  EXPECT_NE(first, second);
  EXPECT_EQ(pipeline.position().epoch, 2);  // where it goes on
  auto reference = data::make_data_loader<data::samplers::SequentialSampler>(
      Rows(kSamples).map(data::transforms::Stack<>()), 8);
  EXPECT_EQ(labels_of_an_epoch(*reference), up_to(kSamples));
}

DEVICE_TEST(TorchData, ALoopLeftEarlyIsAnEpochToo) {
  Pipeline pipeline = this->pipeline(Rows(kSamples));
  const auto loader = torch::make_data_loader(pipeline, kFields);
  for (auto& batch : *loader) {
    EXPECT_EQ(batch.data.is_cuda(), device().is_cuda());
    EXPECT_EQ(batch.data.sizes(), (std::vector<std::int64_t>{8, 4}));
    break;
  }
  EXPECT_EQ(sorted(labels_of_an_epoch(*loader)), up_to(kSamples));
  EXPECT_EQ(pipeline.position().epoch, 2);  // where it goes on
}

DEVICE_TEST(TorchData, GoesOnWhereARestoredPipelineStands) {
  Pipeline straight = this->pipeline(Rows(kSamples)), stopped = this->pipeline(Rows(kSamples));
  const auto all = labels_of_an_epoch(*torch::make_data_loader(straight, kFields));
  stopped.start_epoch(0);
  for (int step = 0; step < 3; ++step)
    torch::next(stopped);
  Pipeline resumed = this->pipeline(Rows(kSamples));
  resumed.restore(stopped.state());
  const auto loader = torch::make_data_loader(resumed, kFields);
  EXPECT_EQ(labels_of_an_epoch(*loader), std::vector(all.begin() + 24, all.end()));
  EXPECT_EQ(labels_of_an_epoch(*loader).size(), all.size());
}

DEVICE_TEST(TorchData, ExamplesAreTheBatchItself) {
  Pipeline pipeline = this->pipeline(Rows(kSamples), /*held=*/2);
  const auto loader = torch::make_data_loader(pipeline, kFields);
  std::vector<data::Example<>> held;
  const kit::Caught caught = kit::caught([&] {
    for (auto& batch : *loader)
      held.push_back(batch);  // a copy of the bytes would not hold the slot
  });
  EXPECT_EQ(static_cast<int>(caught.kind), static_cast<int>(ErrorKind::resource));
  ASSERT_EQ(held.size(), 2u);
  for (const auto& [x, label] : held)
    EXPECT_TRUE(x.cpu().equal(rows(label.cpu())));
}

DEVICE_TEST(TorchData, ExamplesWithoutATarget) {
  const at::Tensor values = at::arange(24, at::kDouble).reshape({12, 2});
  Pipeline pipeline = Pipeline::build()
                          .source(torch::dataset_source(data::datasets::TensorDataset(values)))
                          .batch_size(5)
                          .device(device())
                          .create();
  std::int64_t row = 0;
  const auto loader = torch::make_data_loader<data::TensorExample>(pipeline);
  for (auto& batch : *loader) {
    EXPECT_TRUE(batch.data.cpu().equal(values.narrow(0, row, batch.data.size(0))));
    row += batch.data.size(0);
  }
  EXPECT_EQ(row, 12);
}

DEVICE_TEST(TorchData, DatasetsBehindTransformsAreSources) {
  const auto twice = data::transforms::Lambda<data::Example<>>(
      [](data::Example<> example) { return data::Example<>(2 * example.data, example.target); });
  const auto check = [](Pipeline pipeline) {
    std::int64_t samples = 0;
    for (auto& batch : torch::batches(pipeline, 0)) {
      EXPECT_TRUE(batch["row"].cpu().equal(2 * rows(batch["label"].cpu())));
      samples += batch.rows();
    }
    EXPECT_EQ(samples, kSamples);
  };
  check(this->pipeline(Rows(kSamples).map(twice)));
  check(this->pipeline(Rows(kSamples).map(twice).map(data::transforms::Stack<>())));
}

TEST(DatasetSource, IsWhatItsExamplesAre) {
  const SourcePtr source = torch::dataset_source(Rows(5));
  EXPECT_EQ(source->size(), 5);
  EXPECT_EQ(source->describe(), "torch::data dataset data, target");
  ASSERT_EQ(source->columns().size(), 2u);
  EXPECT_EQ(source->columns()[0].name, "data");
  EXPECT_EQ(source->columns()[0].dtype, Dtype::f32);
  EXPECT_EQ(source->columns()[0].shape, Dims(4));
  EXPECT_EQ(source->columns()[1].dtype, Dtype::i64);
  EXPECT_EQ(source->columns()[1].shape, Dims());
  EXPECT_EQ(source->fingerprint(), torch::dataset_source(Rows(5))->fingerprint());
  EXPECT_NE(source->fingerprint(), torch::dataset_source(Rows(6))->fingerprint());
}

TEST(DatasetSource, TakesTensorsThatAreNotDense) {
  const at::Tensor values = at::arange(24, at::kFloat).reshape({2, 3, 4});
  const SourcePtr source =
      torch::dataset_source(data::datasets::TensorDataset(values.transpose(1, 2).requires_grad_()));
  const std::int64_t indices[] = {1, 0};
  const Array read = Array::empty({2, 4, 3}, Dtype::f32, kit::context(Device::cpu()));
  const ArrayView target = read.view();
  source->read(indices, {&target, 1});
  EXPECT_TRUE(torch::to_tensor(read).equal(values.transpose(1, 2).flip(0)));
}

/// The thread that is in it; LibTorch gives each worker a copy of a dataset, and so do we.
class OneThread : public data::datasets::Dataset<OneThread> {
 public:
  OneThread() = default;
  OneThread(const OneThread&) {}
  data::Example<> get(std::size_t index) override {
    EXPECT_FALSE(inside_.exchange(true));
    const data::Example<> example(at::full({3}, static_cast<float>(index)), at::zeros({}));
    inside_ = false;
    return example;
  }
  std::optional<std::size_t> size() const override { return 1000; }

 private:
  std::atomic<bool> inside_ = false;
};

TEST(DatasetSource, ADatasetIsInOneThreadAtATime) {
  Pipeline pipeline = Pipeline::build()
                          .source(torch::dataset_source(OneThread()))
                          .batch_size(250)
                          .num_threads(4)
                          .device(Device::cpu())
                          .create();
  double sum = 0;
  for (auto& batch : torch::batches(pipeline, 0))
    sum += batch["data"].sum().item<double>();
  EXPECT_EQ(sum, 3 * 999 * 1000 / 2);
}

/// What `change` makes of the example at index 3.
class Odd : public data::datasets::Dataset<Odd> {
 public:
  explicit Odd(std::function<data::Example<>()> change) : change_(std::move(change)) {}
  data::Example<> get(std::size_t index) override {
    return index == 3 ? change_() : data::Example<>(at::zeros({2, 3}), at::zeros({}, at::kLong));
  }
  std::optional<std::size_t> size() const override { return 5; }

 private:
  std::function<data::Example<>()> change_;
};

/// What reading samples 2, 3 and 4 says.
kit::Caught reading(std::function<data::Example<>()> change) {
  const SourcePtr source = torch::dataset_source(Odd(std::move(change)));
  const std::int64_t indices[] = {2, 3, 4};
  const Context context = kit::context(Device::cpu());
  const Array x = Array::empty({3, 2, 3}, Dtype::f32, context);
  const Array y = Array::empty({3}, Dtype::i64, context);
  const ArrayView targets[] = {x.view(), y.view()};
  return kit::caught([&] { source->read(indices, targets); });
}

TEST(DatasetSource, RefusesSamplesThatAreNotAlike) {
  const at::Tensor x = at::zeros({2, 3}), y = at::zeros({}, at::kLong);
  EXPECT_EQ(
      reading([=] {
        return data::Example<>(at::zeros({2, 4}), y);
      }).text,
      "sample 3: `data` is Float (2, 4); by sample 0 it must be Float (2, 3). All samples must "
      "be alike.");
  EXPECT_EQ(reading([=] { return data::Example<>(x, at::zeros({1})); }).text,
            "sample 3: `target` is Float (1,); by sample 0 it must be Long (). All samples must be "
            "alike.");
  EXPECT_EQ(reading([=] { return data::Example<>(x, at::Tensor()); }).text,
            "sample 3: `target` is an undefined tensor.");
  const kit::Caught thrown = reading([=] { return data::Example<>(x + at::zeros({7}), y); });
  EXPECT_EQ(thrown.text,
            "The size of tensor a (3) must match the size of tensor b (7) at non-singleton "
            "dimension 1");
  EXPECT_EQ(static_cast<int>(thrown.kind), static_cast<int>(ErrorKind::io));
}

class Unsized : public Rows {
 public:
  Unsized() : Rows(3) {}
  std::optional<std::size_t> size() const override { return std::nullopt; }
};

TEST(DatasetSource, RefusesWhatItCannotKnow) {
  EXPECT_ERROR(torch::dataset_source(Rows(0)), invalid,
               "dataset_source: the dataset is empty; shapes and dtypes are those of its first "
               "example.");
  EXPECT_ERROR(torch::dataset_source(Unsized()), invalid,
               "dataset_source: the dataset does not know its size; a source needs one.");
  EXPECT_ERROR(torch::dataset_source(Rows(3), {.data = "x", .target = "x"}), invalid,
               "dataset_source: there are two columns `x`; names must differ.");
}

TEST(DataLoader, RefusesFieldsThatAreNotDelivered) {
  Pipeline pipeline = Pipeline::build()
                          .source(torch::dataset_source(Rows(3), kFields))
                          .batch_size(2)
                          .device(Device::cpu())
                          .create();
  EXPECT_ERROR(torch::make_data_loader(pipeline), invalid,
               "make_data_loader: `data` is `data`, but the pipeline delivers `row`, `label`. Name "
               "one of those.");
  EXPECT_ERROR(torch::make_data_loader(pipeline, {.data = "row", .target = "class"}), invalid,
               "make_data_loader: `target` is `class`, but the pipeline delivers `row`, `label`. "
               "Name one of those.");
}

}  // namespace
}  // namespace forebay
