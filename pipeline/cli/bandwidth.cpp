#include <forebay/pipeline/cli/bandwidth.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include <forebay/array/array.h>
#include <forebay/array/parallel.h>

namespace forebay::cli {

std::optional<double> copy_bandwidth(Device device) {
  if (device.is_cuda() && cuda_device_count() <= device.index) return {};
  // Beyond every cache; copies of one round wait for each other, rounds are timed to the end.
  const std::int64_t bytes = device.is_cuda() ? std::int64_t{256} << 20 : std::int64_t{64} << 20;
  const int copies = device.is_cuda() ? 8 : 1;
  const Context context = Context::create(device);
  const Stream& stream = context.stream;
  const Array from = Array::zeros({bytes}, Dtype::u8, context),
              to = Array::zeros({bytes}, Dtype::u8, context);
  stream.synchronize();
  double best = 0;
  for (int round = 0; round < 4; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < copies; ++i) {
      if (device.is_cuda()) {
        copy(from.view(), to.view(), stream);
        continue;
      }
      stream.enqueue([&] {
        parallel_for(bytes, 1 << 20, [&](std::int64_t first, std::int64_t last) {
          std::memcpy(to.as<char>() + first, from.as<char>() + first,
                      static_cast<std::size_t>(last - first));
        });
      });
    }
    stream.synchronize();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    best = std::max(best, 2.0 * static_cast<double>(bytes) * copies / took.count());
  }
  return best;
}

}  // namespace forebay::cli
