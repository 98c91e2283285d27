// A pipeline that feeds LibTorch tensors, with forebay::torch, on one rank or many.
#include <forebay/distributed.h>
#include <forebay/pipeline.h>
#include <forebay/torch.h>

#include <ATen/ATen.h>

#include <cstdio>

int main() {
  const at::Tensor data = at::arange(12, at::kFloat).reshape({6, 2});
  auto ranks = forebay::distributed::join();
  auto pipeline = forebay::Pipeline::build()
                      .source(forebay::array_source({{"x", forebay::torch::to_array(data)}}))
                      .batch_size(4)
                      .device(forebay::Device::cpu())
                      .clip({.min = 1, .max = 8})
                      .create();
  ranks.check(pipeline);
  at::Tensor sum = at::zeros({2});
  for (auto& batch : forebay::torch::batches(pipeline, 0))
    sum += batch["x"].sum(0);
  std::printf("sums %g %g\n", sum[0].item<double>(), sum[1].item<double>());
  return at::equal(sum, data.clamp(1, 8).sum(0)) ? 0 : 1;
}
