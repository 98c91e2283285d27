// Arrays and ops without a pipeline, and the way in and out for any library that speaks DLPack.
#include <forebay/array.h>
#include <forebay/dlpack.h>
#include <forebay/ops.h>

#include <cstdio>

int main() try {
  using namespace forebay;
  const Device device = device_from_name("auto");
  const Context context = Context::create(device);  // a stream and a memory pool, passed to each op

  const Array host = Array::from({2, 3}, std::vector<float>{-9, -1, 0, 1, 2, 9});
  const Array x = copy_to(host, context);
  const Array clipped = clip(x, {.min = -3, .max = 3}, context);
  // Each row to mean 0 and deviation 1.
  const Array rows = normalize(clipped, {.per_sample = true}, context);

  // Without a copy into another library's hands, and back.
  const Array same = from_dlpack(to_dlpack(rows));

  const Context on_host = Context::create(Device::cpu());
  const Array result = Array::empty(same.shape(), same.dtype(), on_host);
  copy(same.view(), result.view(), context.stream);
  context.stream.synchronize();  // work on arrays is asynchronous
  for (int row = 0; row < 2; ++row) {
    const float* values = result.as<float>() + 3 * row;
    std::printf("%8.4f %8.4f %8.4f\n", values[0], values[1], values[2]);
    if (!(values[0] + values[1] + values[2] < 1e-6f)) return 1;
  }
  return same.data() == rows.data() ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
