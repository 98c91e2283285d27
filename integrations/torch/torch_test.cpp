#include <forebay/integrations/torch/torch.h>

#include <ATen/ATen.h>

#include <thread>

#include "kit/kit.h"

namespace forebay {
namespace {

// --- tensors and arrays
// ---------------------------------------------------------------------------------------------

TEST(ToTensor, GivesEachDtypeItsCounterpart) {
  const struct {
    Dtype dtype;
    at::ScalarType wanted;
  } cases[] = {{Dtype::boolean, at::kBool},      {Dtype::u8, at::kByte},
               {Dtype::u16, at::kUInt16},        {Dtype::u32, at::kUInt32},
               {Dtype::u64, at::kUInt64},        {Dtype::i8, at::kChar},
               {Dtype::i16, at::kShort},         {Dtype::i32, at::kInt},
               {Dtype::i64, at::kLong},          {Dtype::f16, at::kHalf},
               {Dtype::bf16, at::kBFloat16},     {Dtype::f32, at::kFloat},
               {Dtype::f64, at::kDouble},        {Dtype::c64, at::kComplexFloat},
               {Dtype::c128, at::kComplexDouble}};
  ASSERT_EQ(std::size(cases), std::size(kAllDtypes));
  for (const auto& [dtype, wanted] : cases) {
    const Array array = kit::random({3, 2}, dtype, 5);
    const at::Tensor tensor = torch::to_tensor(array);
    EXPECT_EQ(tensor.scalar_type(), wanted);
    EXPECT_EQ(tensor.data_ptr(), array.data());
    EXPECT_TRUE(kit::same_bits(torch::to_array(tensor), array));
  }
}

TEST(ToTensor, KeepsShapeStridesAndAddress) {
  const Array array = kit::random({4, 6}, Dtype::f32, 3);
  const Array view = array.slice(0, 1, 4, 2).slice(1, 2, 6).permute({1, 0});
  const at::Tensor tensor = torch::to_tensor(view);
  EXPECT_EQ(tensor.sizes(), (std::vector<std::int64_t>{4, 2}));
  EXPECT_EQ(tensor.strides(), (std::vector<std::int64_t>{1, 12}));
  EXPECT_EQ(tensor.data_ptr(), view.data());
  EXPECT_EQ(torch::to_tensor(kit::random({}, Dtype::f32, 1)).dim(), 0);
  EXPECT_EQ(torch::to_tensor(kit::random({3, 0}, Dtype::f32, 1)).sizes(),
            (std::vector<std::int64_t>{3, 0}));
  EXPECT_TRUE(torch::to_tensor(array.slice(0, 0, 1).broadcast_to({5, 6}))[4].equal(
      torch::to_tensor(array)[0]));
}

TEST(ToTensor, SharesMemoryBothWays) {
  const Array array =
      kit::generate({4}, Dtype::f32, [](std::int64_t i) { return static_cast<double>(i); });
  const at::Tensor tensor = torch::to_tensor(array);
  tensor[1] = 50;
  array.as<float>()[2] = 60;
  EXPECT_TRUE(kit::near(array, std::vector<double>{0, 50, 60, 3}, 0));
  EXPECT_TRUE(tensor.equal(at::tensor({0.f, 50.f, 60.f, 3.f})));
}

TEST(ToTensor, KeepsTheMemoryUntilItsLastView) {
  Array array = kit::random({4, 4}, Dtype::f32, 1);
  const std::weak_ptr<void> memory = array.owner();
  at::Tensor part = torch::to_tensor(array)[2];
  array = Array();
  EXPECT_FALSE(memory.expired());
  std::thread([part = std::move(part)]() mutable { part.reset(); }).join();
  EXPECT_TRUE(memory.expired());
}

TEST(ToTensor, RefusesNegativeStrides) {
  EXPECT_ERROR(torch::to_tensor(kit::random({3}, Dtype::f32, 1).slice(0, 2, -4, -1)), unsupported,
               "to_dlpack: `array` of shape (3,) has strides (-1,); DLPack's consumers take none "
               "below 0. Make a dense "
               "copy first.");
}

TEST(ToArray, SharesMemoryBothWays) {
  const at::Tensor tensor = at::arange(6, at::kInt).reshape({2, 3});
  const Array array = torch::to_array(tensor.t().slice(0, 1));
  EXPECT_EQ(array.shape(), (Dims{2, 2}));
  EXPECT_EQ(array.strides(), (Dims{1, 3}));
  tensor[0][1] = 70;
  array.as<std::int32_t>()[4] = 80;
  EXPECT_TRUE(kit::near(array, std::vector<double>{70, 4, 2, 80}, 0));
  EXPECT_EQ(tensor[1][2].item<int>(), 80);
}

TEST(ToArray, KeepsTheTensorsMemoryAlive) {
  at::Tensor tensor = at::full({3}, 7, at::kFloat);
  const c10::weak_intrusive_ptr<c10::StorageImpl> memory(tensor.storage().getWeakStorageImpl());
  Array array = torch::to_array(tensor);
  tensor.reset();
  EXPECT_FALSE(memory.expired());
  EXPECT_TRUE(kit::near(array, std::vector<double>{7, 7, 7}, 0));
  std::thread([array = std::move(array)] {}).join();
  array = Array();
  EXPECT_TRUE(memory.expired());
}

TEST(ToArray, LetsGoOfTheGraphBehindATensor) {
  const at::Tensor weight = at::ones({3}).requires_grad_();
  at::Tensor result = weight * 2;
  const std::weak_ptr<::torch::autograd::Node> graph = result.grad_fn();
  ASSERT_FALSE(graph.expired());
  const Array array = torch::to_array(result);
  result.reset();
  EXPECT_TRUE(graph.expired());
  EXPECT_TRUE(kit::near(array, std::vector<double>{2, 2, 2}, 0));
}

TEST(ToArray, RefusesWhatIsNotPlainMemory) {
  const at::Tensor complex = at::ones({2}, at::kComplexFloat);
  const struct {
    at::Tensor tensor;
    const char* text;
  } cases[] = {
      {at::eye(2).to_sparse(),
       "to_array: `tensor` has layout Sparse; supported: Strided. Call to_dense() first."},
      {at::empty({2}, at::device(at::kMeta)),
       "to_array: `tensor` is on device meta; supported: cpu, cuda. Copy it there first."},
      {complex.conj(),
       "to_array: `tensor` has a pending conjugate; its memory holds other values. Call "
       "resolve_conj() first."},
      {at::imag(complex.conj()),
       "to_array: `tensor` has a pending negative; its memory holds other values. Call "
       "resolve_neg() first."},
      {at::_efficientzerotensor({2}, at::kFloat),
       "to_array: `tensor` stands for zeros and has no memory. Call clone() first."},
      {at::quantize_per_tensor(at::ones({2}), 1.0, 0, at::kQInt8),
       "to_array: `tensor` is quantized (QInt8). Call dequantize() or int_repr() first."},
      {at::ones({2}).to(at::kFloat8_e4m3fn),
       "from_dlpack: `tensor` has dtype float8_e4m3fn; supported: bool, integers, f16, bf16, f32, "
       "f64, c64, c128. "
       "Convert it first."},
      {at::ones({1, 1, 1, 1, 1, 1, 1, 1, 1}),
       "from_dlpack: `tensor` has rank 9; at most 8 is supported. Merge some of its axes first."},
  };
  for (const auto& [tensor, text] : cases) {
    const auto memory_owners = [&tensor = tensor] {
      return tensor.has_storage() ? tensor.storage().use_count() : 0;
    };
    const auto owners = tensor.use_count(), owners_of_memory = memory_owners();
    const kit::Caught caught = kit::caught([&tensor = tensor] { torch::to_array(tensor); });
    EXPECT_EQ(caught.text, text);
    EXPECT_EQ(static_cast<int>(caught.kind), static_cast<int>(ErrorKind::unsupported)) << text;
    EXPECT_EQ(tensor.use_count(), owners) << text;
    EXPECT_EQ(memory_owners(), owners_of_memory) << text;
  }
  EXPECT_ERROR(torch::to_array(at::Tensor()), invalid, "to_array: `tensor` is undefined.");
}

TEST(TorchStream, IsMissingOnTheCpu) {
  EXPECT_ERROR(torch::current_stream(Device::cpu()), unsupported,
               "current_stream: LibTorch has no stream on device cpu; only CUDA devices have one.");
}

TEST(TorchMemory, IsTheHostsOnTheCpu) { EXPECT_EQ(torch::memory(Device::cpu()), host_memory()); }

// --- the hand-off, on both devices
// -----------------------------------------------------------------------------------

/// Sample i is the row [10i, 10i + 1, .. 10i + 9] in u16; the pipeline makes twice that in f32.
class HandOff : public kit::DeviceTest {
 protected:
  static constexpr std::int64_t kSamples = 64, kWidth = 10, kRows = 8;

  Pipeline pipeline(int held = 16) const {
    const Array rows = kit::generate({kSamples, kWidth}, Dtype::u16,
                                     [](std::int64_t i) { return static_cast<double>(i); });
    return Pipeline::build()
        .source(array_source({{"x", rows}}))
        .batch_size(kRows)
        .device(device())
        .shuffle(ShuffleMode::full)
        .seed(3)
        .max_held_batches(held)
        .normalize({.mean = 0.0, .std = 0.5})
        .create({.poison = true});
  }

  /// What the batch's "x" must hold.
  static at::Tensor wanted(const forebay::torch::TensorBatch& batch) {
    const auto ids = batch.batch().sample_ids();
    const at::Tensor first =
        at::tensor(std::vector<std::int64_t>(ids.begin(), ids.end())).unsqueeze(1) * kWidth;
    return (2 * (first + at::arange(kWidth))).to(at::kFloat);
  }
};

DEVICE_TEST(HandOff, DeliversTensorsThatShareTheSlot) {
  Pipeline pipeline = this->pipeline();
  std::int64_t rows = 0;
  for (auto& batch : torch::batches(pipeline, 2)) {
    EXPECT_EQ(batch.batch().epoch(), 2);
    const at::Tensor x = batch["x"];
    EXPECT_EQ(x.is_cuda(), device().is_cuda());
    EXPECT_EQ(x.data_ptr(), batch.batch()["x"].data());
    EXPECT_TRUE(x.cpu().equal(wanted(batch)));
    rows += batch.rows();
  }
  EXPECT_EQ(rows, kSamples);
  EXPECT_EQ(pipeline.stats().returned_bytes, 0u);
}

DEVICE_TEST(HandOff, EndsAnEpochAndGoesOnWithTheNext) {
  Pipeline pipeline = this->pipeline();
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (int step = 0; step < kSamples / kRows; ++step) {
      const auto batch = torch::next(pipeline);
      ASSERT_TRUE(batch.has_value());
      EXPECT_EQ(batch->batch().epoch(), epoch);
    }
    EXPECT_FALSE(torch::next(pipeline).has_value());
  }
}

DEVICE_TEST(HandOff, MayBeLeftEarlyAndBegunAgain) {
  Pipeline pipeline = this->pipeline();
  for (int epoch = 0; epoch < 5; ++epoch) {
    int step = 0;
    for (auto& batch : torch::batches(pipeline, epoch)) {
      EXPECT_EQ(batch.batch().step(), step);
      EXPECT_TRUE(batch["x"].cpu().equal(wanted(batch)));
      if (++step == 3) break;
    }
  }
}

DEVICE_TEST(HandOff, NamesTheFieldsThereAre) {
  Pipeline pipeline = this->pipeline();
  const auto batch = torch::next(pipeline);
  EXPECT_ERROR((*batch)["images"], invalid, "the batch has no field `images`; it has `x`.");
}

DEVICE_TEST(HandOff, HeldTensorsKeepTheirBytesWhileLaterBatchesCome) {
  Pipeline pipeline = this->pipeline();
  std::vector<std::pair<at::Tensor, at::Tensor>> held;
  for (int epoch = 0; epoch < 4; ++epoch) {
    for (auto& batch : torch::batches(pipeline, epoch)) {
      if (batch.batch().step() % 3 == 0) held.emplace_back(batch["x"], wanted(batch));
    }
  }
  ASSERT_EQ(held.size(), 12u);
  for (const auto& [got, want] : held)
    EXPECT_TRUE(got.cpu().equal(want));
}

DEVICE_TEST(HandOff, SlotsComeBackFromOtherThreads) {
  // A slot that is not returned makes `next` refuse.
  Pipeline pipeline = this->pipeline(/*held=*/2);
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (auto& batch : torch::batches(pipeline, epoch)) {
      at::Tensor x = batch["x"];
      const at::Tensor want = wanted(batch);
      std::thread([x = std::move(x), want]() mutable {
        EXPECT_TRUE(x.cpu().equal(want));
        x.reset();
      }).join();
    }
  }
}

DEVICE_TEST(HandOff, RefusesWhenTooManyBatchesAreHeld) {
  Pipeline pipeline = this->pipeline(/*held=*/2);
  std::vector<at::Tensor> held;
  for (int i = 0; i < 2; ++i)
    held.push_back((*torch::next(pipeline))["x"]);
  EXPECT_EQ(static_cast<int>(kit::caught([&] { torch::next(pipeline); }).kind),
            static_cast<int>(ErrorKind::resource));
  held.clear();
  EXPECT_TRUE(torch::next(pipeline).has_value());
}

DEVICE_TEST(HandOff, TensorsOutliveThePipeline) {
  at::Tensor x, want;
  {
    Pipeline pipeline = this->pipeline();
    const auto batch = torch::next(pipeline);
    x = (*batch)["x"];
    want = wanted(*batch);
  }
  EXPECT_TRUE(x.cpu().equal(want));
  std::thread([x = std::move(x)]() mutable { x.reset(); }).join();
}

DEVICE_TEST(HandOff, TheGraphOfALossHoldsTheBatchUntilItIsFreed) {
  Pipeline pipeline = this->pipeline(/*held=*/1);
  const at::Tensor weight =
      at::ones({kWidth}, device().is_cuda() ? at::kCUDA : at::kCPU).requires_grad_();
  at::Tensor sum = at::zeros({kWidth});
  for (auto& batch : torch::batches(pipeline, 0)) {
    sum += wanted(batch).sum(0);
    // The graph saves the batch for the gradient of `weight`; the engine frees it in the thread
    // that runs backward.
    at::Tensor loss = (batch["x"] * weight).sum();
    const bool last = batch.batch().step() + 1 == pipeline.steps_per_epoch();
    batch = torch::TensorBatch(Batch());
    if (!last) {
      EXPECT_EQ(static_cast<int>(kit::caught([&] { torch::next(pipeline); }).kind),
                static_cast<int>(ErrorKind::resource));
    }
    std::thread([&loss] { loss.backward(); }).join();
  }
  EXPECT_TRUE(weight.grad().cpu().equal(sum));
}

}  // namespace
}  // namespace forebay
