#pragma once

#include <optional>
#include <string_view>

#include <forebay/pipeline/pipeline.h>

namespace at {
class Tensor;
}

namespace forebay::torch {

/// `array` as a tensor that shares its memory, through DLPack. On CUDA the caller orders the streams.
/// Errors: unsupported for u16/u32/u64 arithmetic-free dtypes LibTorch lacks, and for negative strides.
at::Tensor to_tensor(const Array& array);

/// `tensor` as an array that shares its memory and keeps it alive. The tensor must be strided (not sparse,
/// quantized, or with a pending conjugate or negative bit).
/// Errors: unsupported, naming what was found.
Array to_array(const at::Tensor& tensor);

/// The calling thread's current LibTorch stream on `device`, borrowed. A CPU device has none: unsupported.
Stream current_stream(Device device);

/// LibTorch's caching allocator for `device`, so that the pipeline's slots show up in its statistics and share its
/// pool; the host's memory for the CPU.
MemoryPtr memory(Device device);

/// One batch as tensors. Tensors share the slot's memory; it is reused when the last of them is gone, behind the
/// work that was enqueued on LibTorch's current stream (and on streams given to `record_stream`).
class TensorBatch {
 public:
  explicit TensorBatch(Batch batch) : batch_(std::move(batch)) {}
  /// The field called `name`. Errors: invalid, with the names there are.
  at::Tensor operator[](std::string_view name) const;
  const Batch& batch() const { return batch_; }
  std::int64_t rows() const { return batch_.rows(); }

 private:
  Batch batch_;
};

/// The next batch, ordered before later work on LibTorch's current stream; no value at the end of the epoch.
std::optional<TensorBatch> next(Pipeline& pipeline);

/// `for (auto& batch : forebay::torch::batches(pipeline, epoch))`: one epoch. Leaving the loop early is fine.
class Batches {
 public:
  struct End {};
  class Iterator {
   public:
    explicit Iterator(Pipeline* pipeline) : pipeline_(pipeline), batch_(next(*pipeline)) {}
    TensorBatch& operator*() { return *batch_; }
    Iterator& operator++() {
      batch_.reset();  // the slot goes back before the next batch is waited for
      batch_ = next(*pipeline_);
      return *this;
    }
    bool operator!=(End) const { return batch_.has_value(); }

   private:
    Pipeline* pipeline_;
    std::optional<TensorBatch> batch_;
  };
  explicit Batches(Pipeline* pipeline) : pipeline_(pipeline) {}
  Iterator begin() { return Iterator(pipeline_); }
  End end() const { return {}; }

 private:
  Pipeline* pipeline_;
};

/// Starts `epoch` and iterates over it. Slots come from LibTorch's allocator unless the pipeline's Options said else.
Batches batches(Pipeline& pipeline, std::int64_t epoch);

}  // namespace forebay::torch
