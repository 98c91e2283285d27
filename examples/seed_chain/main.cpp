// normalize, clip, matmul, FFT and histogram on batches of 8192 x 1024, with a training step behind
// them: fed by the pipeline of seed_chain.yaml, and by a plain loop that does the same on the host
// with LibTorch. Prints for both how long training waited and how long its steps took.

#include <forebay/pipeline.h>
#include <forebay/torch.h>

#include <torch/torch.h>

#include <cstdio>

#include "kit/arguments.h"
#include "kit/step_clock.h"

namespace {

constexpr std::int64_t kRows = 2 * 8192, kWidth = 1024, kBins = 64;
constexpr double kTop = 200;  // of the histogram's range

/// Writes x.npy, y.npy and w.npy below `folder` unless they are there.
void make_data(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  torch::manual_seed(1);
  const auto write = [&](const char* name, const torch::Tensor& tensor) {
    const auto path = folder / name, part = folder / (std::string(name) + ".part");
    if (std::filesystem::exists(path)) return;
    forebay::write_npy(part, forebay::torch::to_array(tensor).view());
    std::filesystem::rename(part, path);
  };
  write("x.npy", torch::randn({kRows, kWidth}) * 2 + 1);
  write("y.npy", torch::randint(10, {kRows}, torch::kLong));
  write("w.npy", torch::randn({kWidth, kWidth}));
}

struct Fields {
  torch::Tensor x, hist, y;
};

/// What seed_chain.yaml says, as one would write it with LibTorch.
class HostChain {
 public:
  explicit HostChain(const std::filesystem::path& folder)
      : x_(read(folder / "x.npy")), y_(read(folder / "y.npy")), w_(read(folder / "w.npy")) {}

  Fields operator()(const torch::Tensor& rows) const {
    torch::Tensor x = torch::matmul(((x_.index_select(0, rows) - 1) / 2).clamp(-3, 3), w_);
    const torch::Tensor size = torch::fft_rfft(x, std::nullopt, -1, "ortho").abs();
    const torch::Tensor bin = (size * (kBins / kTop)).to(torch::kLong).clamp_max(kBins - 1);
    torch::Tensor hist = torch::zeros({rows.size(0), kBins}, torch::kLong);
    hist.scatter_add_(1, bin, size.le(kTop).to(torch::kLong));
    return {x, hist, y_.index_select(0, rows)};
  }

 private:
  static torch::Tensor read(const std::filesystem::path& path) {
    return forebay::torch::to_tensor(forebay::read_npy(path));
  }
  torch::Tensor x_, y_, w_;
};

/// A step of training: bf16 on a GPU, f32 on a CPU.
class Training {
 public:
  Training(torch::Device device, std::int64_t hidden, int layers)
      : dtype_(device.is_cuda() ? torch::kBFloat16 : torch::kFloat) {
    std::int64_t width = kWidth + kBins;
    for (int layer = 0; layer < layers; ++layer, width = hidden) {
      net_->push_back(torch::nn::Linear(width, hidden));
      net_->push_back(torch::nn::ReLU());
    }
    net_->push_back(torch::nn::Linear(width, 10));
    net_->to(device, dtype_);
    optimizer_ = std::make_unique<torch::optim::SGD>(net_->parameters(), 1e-3);
  }

  void step(const Fields& fields) {
    const torch::Tensor input =
        torch::cat({fields.x.to(dtype_) / 32, fields.hist.to(dtype_) / kBins}, 1);
    const torch::Tensor loss =
        torch::cross_entropy_loss(net_->forward(input).to(torch::kFloat), fields.y);
    optimizer_->zero_grad();
    loss.backward();
    optimizer_->step();
  }

 private:
  torch::Dtype dtype_;
  torch::nn::Sequential net_;
  std::unique_ptr<torch::optim::SGD> optimizer_;
};

/// Whether the pipeline's first batch is what LibTorch makes of the same rows, up to TF32's
/// rounding.
bool agrees(const forebay::torch::TensorBatch& batch, const HostChain& chain) {
  const auto ids = batch.batch().sample_ids();
  const Fields want = chain(torch::tensor(std::vector<std::int64_t>(ids.begin(), ids.end())));
  const double x = (batch["x"].cpu() - want.x).abs().max().item<double>();
  const double hist = (batch["hist"].cpu() - want.hist).abs().sum().item<double>() /
                      want.hist.sum().item<double>() / 2;
  const bool same = x < 0.5 && hist < 0.01 && torch::equal(batch["y"].cpu(), want.y);
  std::fprintf(stderr,
               "against LibTorch on the host: x within %.2g of %.0f, %.3f %% of the counts in "
               "another bin%s\n",
               x, want.x.abs().max().item<double>(), 100 * hist, same ? "" : ": WRONG");
  return same;
}

int run(const kit::Arguments& arguments) {
  const std::filesystem::path folder = arguments["data"];
  const int batches = arguments.number("batches");
  make_data(folder / "data");
  forebay::Spec spec = forebay::Pipeline::from_file(folder / "seed_chain.yaml").spec();
  spec.device = forebay::device_from_name(arguments["device"].c_str());
  forebay::Pipeline pipeline = forebay::Pipeline::from_spec(std::move(spec));
  const bool cuda = pipeline.device().is_cuda();
  const torch::Device device =
      cuda ? torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(pipeline.device().index))
           : torch::Device(torch::kCPU);
  const std::int64_t hidden = arguments.number("hidden") > 0 ? arguments.number("hidden")
                              : cuda                         ? 8192
                                                             : 256;
  const HostChain chain(folder / "data");
  kit::StepClock clock(device);

  // The first batch warms up and is checked; it is not timed.
  Training training(device, hidden, arguments.number("layers"));
  bool right = false;
  int done = -1;
  for (int epoch = 0; done < batches; ++epoch) {
    for (auto& batch : forebay::torch::batches(pipeline, epoch)) {
      if (done < 0) {
        right = agrees(batch, chain);
        training.step({batch["x"], batch["hist"], batch["y"]});
        clock.read();
      } else {
        const auto step = clock.step();
        training.step({batch["x"], batch["hist"], batch["y"]});
      }
      if (++done == batches) break;
    }
  }
  const auto ours = clock.read();

  const std::int64_t size = pipeline.spec().batch_size;
  for (done = -1; done < batches; ++done) {
    const Fields host = chain(torch::randperm(kRows, torch::kLong).slice(0, 0, size));
    const Fields fields{host.x.to(device), host.hist.to(device), host.y.to(device)};
    if (done < 0) {
      training.step(fields);
      clock.read();
    } else {
      const auto step = clock.step();
      training.step(fields);
    }
  }
  const auto plain = clock.read();

  const bool json = arguments["json"] != "no";
  const auto line = [&](const char* name, const kit::StepClock::Times& times, const char* end) {
    const double n = times.steps;
    std::printf(
        json ? "\"%s\": {\"wait_ms\": %.4g, \"step_ms\": %.4g, \"wait_share\": %.4g, "
               "\"samples_per_s\": %.6g}%s"
             : "%-14s wait %8.2f ms, step %8.2f ms a batch: %4.1f %% waited, %.4g samples/s%s",
        name, times.wait_ms / n, times.step_ms() / n,
        (json ? 1 : 100) * times.wait_ms / times.total_ms,
        1000 * n * static_cast<double>(size) / times.total_ms, end);
  };
  std::printf(json ? "{\"device\": \"%s\", \"batches\": %d, " : "on %s, %d batches\n",
              device.str().c_str(), batches);
  line(json ? "pipeline" : "pipeline:", ours, json ? ", " : "\n");
  line(json ? "host_loop" : "LibTorch loop:", plain, json ? "}\n" : "\n");
  return right ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) try {
  return run({argc,
              argv,
              {{"device", "auto"},
               {"batches", "4"},
               {"data", kit::program_folder()},
               {"hidden", "0"},
               {"layers", "2"},
               {"json", "no"}}});
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
