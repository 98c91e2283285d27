// Trains a small network on the digits in several processes, one for each GPU (or on the CPU), whose
// gradients are averaged:
//
//   torchrun --no-python --nproc-per-node 3 ./distributed
//
// With --checkpoint FILE it goes on from there and saves behind the last step, on any number of
// ranks; --steps N stops behind N steps.

#include <forebay/distributed.h>
#include <forebay/pipeline.h>
#include <forebay/torch.h>

#include <torch/torch.h>

#include <cstdio>
#include <filesystem>

#include "kit/arguments.h"

namespace {

using forebay::distributed::Ranks;

/// What has been learnt, and from which samples: kept together, whole or not at all.
void save(const std::string& path, torch::nn::Sequential& net, const std::string& state) {
  torch::serialize::OutputArchive archive;
  net->save(archive);
  archive.write("pipeline", c10::IValue(state));
  archive.save_to(path + ".part");
  std::filesystem::rename(path + ".part", path);
}

/// The pipeline's state.
std::string load(const std::string& path, torch::nn::Sequential& net) {
  torch::serialize::InputArchive archive;
  archive.load_from(path);
  net->load(archive);
  c10::IValue state;
  archive.read("pipeline", state);
  return state.toStringRef();
}

/// Over all ranks: the mean loss of the samples that were learnt from, told by rank 0.
double report(Ranks& ranks, std::int64_t epoch, double loss, std::int64_t samples, double weights) {
  const auto metrics = ranks.gather(forebay::distributed::Metrics{
      {"loss", loss}, {"samples", static_cast<double>(samples)}, {"weights", weights}});
  if (metrics[2].min != metrics[2].max) throw std::runtime_error("the ranks have other weights");
  const double mean = metrics[0].sum / metrics[1].sum;
  if (ranks.is_first()) {
    std::printf("epoch %lld: %.0f samples on %d ranks, loss %.4f\n", static_cast<long long>(epoch),
                metrics[1].sum, ranks.size(), mean);
  }
  return mean;
}

int train(const kit::Arguments& arguments) {
  auto ranks = forebay::distributed::join({.timeout = std::chrono::seconds(10)});
  auto pipeline = ranks.pipeline(arguments["data"] + "/distributed.yaml");
  const bool on_gpu = pipeline.device().is_cuda();
  const torch::Device device(on_gpu ? torch::kCUDA : torch::kCPU,
                             static_cast<c10::DeviceIndex>(on_gpu ? pipeline.device().index : -1));
  torch::manual_seed(7);  // the same first weights on every rank
  torch::nn::Sequential net(torch::nn::Flatten(), torch::nn::Linear(784, 64), torch::nn::ReLU(),
                            torch::nn::Linear(64, 10));
  const std::string& checkpoint = arguments["checkpoint"];
  if (std::filesystem::exists(checkpoint)) {
    pipeline.restore(load(checkpoint, net));
    ranks.check(pipeline);  // that all stand at the same place
  }
  net->to(device);
  torch::optim::SGD optimizer(net->parameters(), 0.1);
  double mean = 0;
  int steps = arguments.number("steps");
  for (auto epoch = pipeline.position().epoch; epoch < arguments.number("epochs") && steps != 0;
       ++epoch) {
    auto losses = torch::zeros({}, torch::TensorOptions(device).dtype(torch::kDouble));
    std::int64_t samples = 0;
    for (auto& batch : forebay::torch::batches(pipeline, epoch)) {
      const std::int64_t rows = batch.real_rows();  // of the last batch perhaps none
      const auto loss = torch::cross_entropy_loss(net->forward(batch["image"].narrow(0, 0, rows)),
                                                  batch["label"].narrow(0, 0, rows));
      optimizer.zero_grad();
      loss.backward();
      ranks.average_gradients(net->parameters(), static_cast<double>(rows));
      optimizer.step();
      if (rows > 0) losses += loss.detach() * rows;
      samples += rows;
      if (--steps == 0) break;
    }
    const double weights = net->parameters().front().sum().item<double>();
    mean = report(ranks, epoch, losses.item<double>(), samples, weights);
  }
  if (!checkpoint.empty() && ranks.is_first()) save(checkpoint, net, pipeline.state());
  const auto metrics = ranks.gather(forebay::distributed::metrics_of(pipeline.stats()));
  if (ranks.is_first()) std::printf("%s", to_text(metrics).c_str());
  return mean < std::stod(arguments["loss"]) ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) try {
  return train({argc,
                argv,
                {{"data", kit::program_folder()},
                 {"epochs", "3"},
                 {"steps", "-1"},
                 {"checkpoint", ""},
                 {"loss", "1e9"}}});
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
