// Trains a small network on 4,500 handwritten digits and tests it on 500 others. The pipeline that
// feeds it is declared in digits.yaml; here is only what a training loop needs.

#include <forebay/pipeline.h>
#include <forebay/torch.h>

#include <torch/torch.h>

#include <cstdio>

#include "kit/arguments.h"
#include "kit/step_clock.h"

namespace {

struct Net : torch::nn::Module {
  torch::nn::Conv2d first{
      register_module("first", torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 16, 3).padding(1)))};
  torch::nn::Conv2d second{
      register_module("second", torch::nn::Conv2d(torch::nn::Conv2dOptions(16, 32, 3).padding(1)))};
  torch::nn::Linear last{register_module("last", torch::nn::Linear(32 * 7 * 7, 10))};

  /// [rows, 28, 28] -> [rows, 10]
  torch::Tensor forward(torch::Tensor x) {
    x = torch::max_pool2d(torch::relu(first(x.unsqueeze(1))), 2);
    x = torch::max_pool2d(torch::relu(second(x)), 2);
    return last(x.flatten(1));
  }
};

/// The same preprocessing over the digits that are held out, in order.
forebay::Pipeline held_out(const forebay::Pipeline& pipeline, const std::string& folder) {
  forebay::Spec spec = pipeline.spec();
  spec.source = forebay::npy_source(
      {{"image", folder + "/test_images.npy"}, {"label", folder + "/test_labels.npy"}});
  spec.shuffle = forebay::ShuffleMode::none;
  return forebay::Pipeline::from_spec(std::move(spec));
}

double accuracy(Net& net, forebay::Pipeline& pipeline) {
  torch::NoGradGuard no_grad;
  std::int64_t right = 0, total = 0;
  for (auto& batch : forebay::torch::batches(pipeline, 0)) {
    right += net.forward(batch["image"]).argmax(1).eq(batch["label"]).sum().item<std::int64_t>();
    total += batch.rows();
  }
  return static_cast<double>(right) / static_cast<double>(total);
}

int run(const kit::Arguments& arguments) {
  using torch::nn::functional::cross_entropy;
  const std::string& folder = arguments["data"];
  forebay::Spec spec = forebay::Pipeline::from_file(folder + "/digits.yaml").spec();
  spec.device = forebay::device_from_name(arguments["device"].c_str());
  forebay::Pipeline pipeline = forebay::Pipeline::from_spec(std::move(spec));
  forebay::Pipeline test = held_out(pipeline, folder);

  const forebay::Device where = pipeline.device();
  const torch::Device device =
      where.is_cuda() ? torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(where.index))
                      : torch::Device(torch::kCPU);
  std::printf("training on %s%s%s\n", device.str().c_str(), where.is_cuda() ? "" : ": ",
              where.is_cuda() ? "" : forebay::cuda_absence_reason());
  torch::manual_seed(7);
  Net net;
  net.to(device);
  torch::optim::Adam optimizer(net.parameters(), 2e-3);
  kit::StepClock clock(device);
  double reached = 0;
  for (int epoch = 0; epoch < arguments.number("epochs"); ++epoch) {
    torch::Tensor losses = torch::zeros({}, device);
    clock.read();
    for (auto& batch : forebay::torch::batches(pipeline, epoch)) {
      const auto step = clock.step();
      auto loss = cross_entropy(net.forward(batch["image"]), batch["label"]);
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
      losses += loss.detach() * batch.rows();
    }
    const auto times = clock.read();
    const auto samples = static_cast<double>(pipeline.spec().source->size());
    reached = accuracy(net, test);
    std::printf(
        "epoch %d: loss %.4f, held-out accuracy %5.1f %%, %6.0f samples/s, waited for data %4.1f "
        "%% of the time\n",
        epoch + 1, losses.item<double>() / samples, 100 * reached, 1000 * samples / times.total_ms,
        100 * times.wait_ms / times.total_ms);
    std::fflush(stdout);
  }
  const double wanted = std::stod(arguments["accuracy"]);
  if (reached < wanted)
    std::fprintf(stderr, "digits: accuracy %.3f is below %.3f\n", reached, wanted);
  return reached < wanted ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) try {
  return run(
      {argc,
       argv,
       {{"device", "auto"}, {"epochs", "5"}, {"data", kit::program_folder()}, {"accuracy", "0"}}});
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
