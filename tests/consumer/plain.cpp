// Arrays, an op and a pipeline, with nothing but forebay::forebay.
#include <forebay/array.h>
#include <forebay/dlpack.h>
#include <forebay/ops.h>
#include <forebay/pipeline.h>

#include <cstdio>

int main() {
  using namespace forebay;
  const Context context = Context::create(Device::cpu());
  const Array x = Array::from({4}, std::vector<float>{-9, -1, 2, 9});
  const Array clipped = clip(x, {.min = -3, .max = 3}, context);
  context.stream.synchronize();
  const float* c = clipped.as<float>();
  if (c[0] != -3 || c[1] != -1 || c[2] != 2 || c[3] != 3) return 1;
  if (from_dlpack(to_dlpack(clipped)).data() != clipped.data()) return 2;

  Pipeline pipeline = Pipeline::build()
                          .source(array_source({{"x", x}}))
                          .batch_size(2)
                          .device(Device::cpu())
                          .clip({.min = 0, .max = 5})
                          .create();
  double sum = 0;
  for (Batch& batch : pipeline.epoch(0)) {
    for (std::int64_t i = 0; i < batch.rows(); ++i)
      sum += batch["x"].as<float>()[i];
  }
  std::printf("sum %g\n", sum);
  return sum == 7 ? 0 : 3;
}
