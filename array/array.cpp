#include <forebay/array/array.h>

#include <cstring>

#include <forebay/array/cuda/backend.h>
#include <forebay/array/parallel.h>
#include <forebay/array/require.h>

namespace forebay {
namespace {

constexpr std::int64_t kCopyGrain = 1 << 20;  // bytes that are worth another thread

void require_copyable(const ArrayView& source, const ArrayView& target) {
  FOREBAY_REQUIRE(source.dtype == target.dtype, invalid,
                  "copy: the source is {} and the target {}; cast first.", name_of(source.dtype),
                  name_of(target.dtype));
  FOREBAY_REQUIRE(source.shape == target.shape, invalid,
                  "copy: the source has shape {} and the target {}.", to_string(source.shape),
                  to_string(target.shape));
  for (const ArrayView* view : {&source, &target}) {
    FOREBAY_REQUIRE(
        is_dense(*view), invalid,
        "copy: the {} has shape {} with strides {}, which is not dense; make it contiguous first.",
        view == &source ? "source" : "target", to_string(view->shape), to_string(view->strides));
  }
}

void require_dense_target(const ArrayView& target) {
  FOREBAY_REQUIRE(is_dense(target), invalid,
                  "fill_bytes: the target has shape {} with strides {}, which is not dense; fill a "
                  "dense array.",
                  to_string(target.shape), to_string(target.strides));
}

/// On a CPU stream, an array in CUDA memory is handled by a CUDA stream that lives for one task.
void run_on_cuda(Device device, const std::function<void(const Stream&)>& work) {
  const Stream stream = Stream::create(device);
  work(stream);
  stream.synchronize();
}

/// `source` and `target` are checked; `owners` live as long as a task on the CPU needs them.
template <class... Owners>
void enqueue_copy(const ArrayView& source, const ArrayView& target, const Stream& stream,
                  const Owners&... owners) {
  if (source.count() == 0) return;
  if (stream.device().is_cuda()) {
    cuda::copy_bytes(target.data, target.device, source.data, source.device, source.bytes(),
                     stream);
    return;
  }
  stream.enqueue([source, target, owners...] {
    if (source.device.is_cuda() || target.device.is_cuda()) {
      run_on_cuda(source.device.is_cuda() ? source.device : target.device,
                  [&](const Stream& cuda_stream) {
                    cuda::copy_bytes(target.data, target.device, source.data, source.device,
                                     source.bytes(), cuda_stream);
                  });
      return;
    }
    parallel_for(static_cast<std::int64_t>(source.bytes()), kCopyGrain,
                 [&](std::int64_t begin, std::int64_t end) {
                   std::memmove(target.as<char>() + begin, source.as<char>() + begin,
                                static_cast<std::size_t>(end - begin));
                 });
  });
}

template <class... Owners>
void enqueue_fill(const ArrayView& target, unsigned char value, const Stream& stream,
                  const Owners&... owners) {
  if (target.count() == 0) return;
  if (stream.device().is_cuda()) {
    cuda::fill_bytes(target.data, target.device, value, target.bytes(), stream);
    return;
  }
  stream.enqueue([target, value, owners...] {
    if (target.device.is_cuda()) {
      run_on_cuda(target.device, [&](const Stream& cuda_stream) {
        cuda::fill_bytes(target.data, target.device, value, target.bytes(), cuda_stream);
      });
      return;
    }
    parallel_for(static_cast<std::int64_t>(target.bytes()), kCopyGrain,
                 [&](std::int64_t begin, std::int64_t end) {
                   std::memset(target.as<char>() + begin, value,
                               static_cast<std::size_t>(end - begin));
                 });
  });
}

}  // namespace

Array::Array() { view_.shape = view_.strides = {0}; }

Array::Array(const ArrayView& view, std::shared_ptr<void> owner)
    : view_(view), owner_(std::move(owner)) {}

Array Array::empty(const Dims& shape, Dtype dtype, const Context& context) {
  return empty(shape, dtype, context.memory, context.stream);
}

Array Array::empty(const Dims& shape, Dtype dtype, const MemoryPtr& memory, const Stream& stream) {
  check_shape(shape, dtype);
  ArrayView view{nullptr, dtype, memory->device(), shape, dense_strides(shape)};
  const std::size_t bytes = view.bytes();
  if (bytes == 0) return {view, nullptr};
  view.data = memory->allocate(bytes, stream);
  // Should the owner not fit in memory, shared_ptr calls the deleter.
  return Array(view, std::shared_ptr<void>(view.data, [memory, stream, bytes](void* data) {
                 memory->deallocate(data, bytes, stream);
               }));
}

Array Array::zeros(const Dims& shape, Dtype dtype, const Context& context) {
  Array result = empty(shape, dtype, context);
  enqueue_fill(result.view(), 0, context.stream, result.owner());
  return result;
}

Array Array::from_host(const Dims& shape, Dtype dtype, const void* values, std::size_t count) {
  check_shape(shape, dtype);
  FOREBAY_REQUIRE(static_cast<std::int64_t>(count) == count_of(shape), invalid,
                  "{} values were given for shape {}, which has {} elements.", count,
                  to_string(shape), count_of(shape));
  const std::size_t bytes = count * size_of(dtype);
  std::shared_ptr<void> block = host_block(bytes);
  if (bytes > 0) std::memcpy(block.get(), values, bytes);
  void* const data = block.get();
  return Array({data, dtype, Device::cpu(), shape, dense_strides(shape)}, std::move(block));
}

void copy(const ArrayView& source, const ArrayView& target, const Stream& stream) {
  require_copyable(source, target);
  enqueue_copy(source, target, stream);
}

Array copy_to(const Array& source, const Context& context) {
  Array result = Array::empty(source.shape(), source.dtype(), context);
  require_copyable(source.view(), result.view());
  enqueue_copy(source.view(), result.view(), context.stream, source.owner(), result.owner());
  if (context.device().is_cuda() && source.count() > 0) context.stream.keep(source.owner());
  return result;
}

void fill_bytes(const ArrayView& target, unsigned char value, const Stream& stream) {
  require_dense_target(target);
  enqueue_fill(target, value, stream);
}

}  // namespace forebay
