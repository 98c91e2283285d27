#include <forebay/integrations/torch/torch.h>

#include <ATen/DLConvertor.h>  // brings ATen/dlpack.h, whose include guard is that of DLPack's own header

#include <sstream>

#include <forebay/array/require.h>
#include <forebay/integrations/dlpack/dlpack.h>

namespace forebay::torch {
namespace {

template <class T>
std::string text_of(const T& value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

}  // namespace

at::Tensor to_tensor(const Array& array) { return at::fromDLPackVersioned(to_dlpack(array)); }

Array to_array(const at::Tensor& tensor) {
  FOREBAY_REQUIRE(tensor.defined(), invalid, "to_array: `tensor` is undefined.");
  FOREBAY_REQUIRE(tensor.layout() == at::kStrided, unsupported,
                  "to_array: `tensor` has layout {}; supported: Strided. Call to_dense() first.",
                  text_of(tensor.layout()));
  FOREBAY_REQUIRE(tensor.device().is_cpu() || tensor.device().is_cuda(), unsupported,
                  "to_array: `tensor` is on device {}; supported: cpu, cuda. Copy it there first.",
                  tensor.device().str());
  FOREBAY_REQUIRE(!tensor.is_quantized(), unsupported,
                  "to_array: `tensor` is quantized ({}). Call dequantize() or int_repr() first.",
                  text_of(tensor.scalar_type()));
  FOREBAY_REQUIRE(!tensor.is_conj(), unsupported,
                  "to_array: `tensor` has a pending conjugate; its memory holds other values. Call "
                  "resolve_conj() first.");
  FOREBAY_REQUIRE(!tensor.is_neg(), unsupported,
                  "to_array: `tensor` has a pending negative; its memory holds other values. Call "
                  "resolve_neg() first.");
  FOREBAY_REQUIRE(!tensor._is_zerotensor(), unsupported,
                  "to_array: `tensor` stands for zeros and has no memory. Call clone() first.");
  DLManagedTensorVersioned* managed = nullptr;
  try {
    managed = at::toDLPackVersioned(
        tensor.detach());  // the graph behind a tensor must not live as long as the array
  } catch (const c10::Error& error) {
    fail(ErrorKind::unsupported, "to_array: LibTorch cannot export `tensor` ({}): {}",
         text_of(tensor.scalar_type()), error.what_without_backtrace());
  }
  try {
    return from_dlpack(managed);
  } catch (...) {
    managed->deleter(managed);
    throw;
  }
}

at::Tensor TensorBatch::operator[](std::string_view name) const { return to_tensor(batch_[name]); }

std::optional<TensorBatch> next(Pipeline& pipeline) {
  const Device device = pipeline.device();
  if (!device.is_cuda()) {
    auto batch = pipeline.next();
    return batch ? std::optional<TensorBatch>(std::move(*batch)) : std::nullopt;
  }
  pipeline.set_default_memory(memory(device));
  auto batch = pipeline.next(current_stream(device));
  return batch ? std::optional<TensorBatch>(std::move(*batch)) : std::nullopt;
}

Batches batches(Pipeline& pipeline, std::int64_t epoch) {
  pipeline.start_epoch(epoch);
  return Batches(&pipeline);
}

}  // namespace forebay::torch
