#pragma once

#include <optional>
#include <string_view>

#include <forebay/pipeline/pipeline.h>

namespace at {
class Tensor;
}

namespace forebay::torch {

/// `array` as a tensor that shares its memory, through DLPack. Every dtype has its counterpart;
/// LibTorch computes little with u16, u32 and u64. The last of the tensor's owners lets go of the
/// memory, on whatever thread it is. On CUDA the caller orders the streams: `tensor.record_stream`
/// does nothing for memory that LibTorch did not make. Errors: unsupported for negative strides.
at::Tensor to_tensor(const Array& array);

/// `tensor` as an array that shares its memory and keeps it alive, though not the graph that
/// computed it. On CUDA the caller orders the streams. Errors: invalid for an undefined tensor;
/// unsupported, naming what was found, for a layout that is not strided, a pending conjugate or
/// negative, a tensor of zeros without memory, a quantized one, a device other than CPU and CUDA,
/// and what `from_dlpack` refuses (fp8, more than 8 axes).
Array to_array(const at::Tensor& tensor);

/// The calling thread's current LibTorch stream on `device`, borrowed.
/// Errors: unsupported for the CPU, which has none, and where LibTorch has no CUDA.
Stream current_stream(Device device);

/// LibTorch's caching allocator for `device`, so that the pipeline's slots show up in its
/// statistics and share its pool; the host's memory for the CPU. One for each device and process.
/// Errors: unsupported for CUDA where LibTorch has none.
MemoryPtr memory(Device device);

/// One batch as tensors. They share the slot's memory; it is reused when the batch and the last of
/// them are gone, behind the work that was enqueued by then on the stream which was current when
/// the batch was taken, and on those given to `record_stream`.
class TensorBatch {
 public:
  explicit TensorBatch(Batch batch) : batch_(std::move(batch)) {}
  /// The field called `name`, [rows, ...]. Errors: invalid, with the names there are.
  at::Tensor operator[](std::string_view name) const;
  const Batch& batch() const { return batch_; }
  std::int64_t rows() const { return batch_.rows(); }
  std::int64_t real_rows() const { return batch_.real_rows(); }  ///< see Batch
  /// Another stream, such as `current_stream(device)` under a guard, will read these tensors. Call
  /// this instead of the tensors' own `record_stream`, which does nothing.
  void record_stream(const Stream& stream) const { batch_.record_stream(stream); }

 private:
  Batch batch_;
};

/// The next batch; no value at the end of the epoch. On CUDA it is ordered before later work on
/// LibTorch's current stream and the host does not wait; on the CPU it is complete. Slots come from
/// LibTorch's allocator unless the pipeline's Options named another.
std::optional<TensorBatch> next(Pipeline& pipeline);

/// `for (auto& batch : forebay::torch::batches(pipeline, epoch))`: one epoch. Leaving the loop
/// early is fine.
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

/// Starts `epoch` of `pipeline`, which must outlive the loop.
Batches batches(Pipeline& pipeline, std::int64_t epoch);

}  // namespace forebay::torch
