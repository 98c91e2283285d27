#include "kit/data.h"

#include <forebay/array/dispatch.h>
#include <forebay/array/parallel.h>
#include <forebay/array/require.h>

namespace forebay::bench {
namespace {

/// MurmurHash3's finalizer: all bits of the result depend on all of `x`.
std::uint32_t mixed(std::uint32_t x) {
  x = (x ^ (x >> 16)) * 0x85ebca6bU;
  x = (x ^ (x >> 13)) * 0xc2b2ae35U;
  return x ^ (x >> 16);
}

/// Elements first..first + count of the flattened data.
void fill(const Data& data, std::int64_t first, std::int64_t count, void* target) {
  dispatch(RealTypes{}, data.dtype, "bench data", "dtype", [&](auto type) {
    using T = typename decltype(type)::type;
    const double step = (data.high - data.low) / 16777216;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::uint32_t bits = mixed(static_cast<std::uint32_t>(first + i + 1)) >> 8;
      static_cast<T*>(target)[i] = static_cast<T>(static_cast<float>(data.low + bits * step));
    }
  });
}

}  // namespace

Array make(const Data& data) {
  const std::int64_t count = count_of(data.shape);
  const std::size_t size = size_of(data.dtype);
  const std::shared_ptr<void> block = host_block(static_cast<std::size_t>(count) * size);
  parallel_for(count, 1 << 16, [&](std::int64_t begin, std::int64_t end) {
    fill(data, begin, end - begin,
         static_cast<char*>(block.get()) + static_cast<std::size_t>(begin) * size);
  });
  return Array({block.get(), data.dtype, Device::cpu(), data.shape, dense_strides(data.shape)},
               block);
}

SourcePtr source_of(const Data& data) {
  Dims sample;
  for (int axis = 1; axis < data.shape.rank; ++axis)
    sample.push_back(data.shape[axis]);
  const std::int64_t count = count_of(sample);
  return callback_source(
      data.shape[0], {{.name = "x", .dtype = data.dtype, .shape = sample}},
      [=](std::int64_t index, std::span<const ArrayView> targets) {
        fill(data, index * count, count, targets[0].data);
      },
      fmt::format("numbers in [{}, {})", data.low, data.high));
}

PipelineBuilder on(const Data& data) {
  return Pipeline::build().source(source_of(data)).batch_size(data.shape[0]);
}

}  // namespace forebay::bench
