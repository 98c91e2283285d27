// Trains a small model, is killed behind every few steps, goes on each time, and ends with the very
// weights of a run that nobody stopped.
//
//   resume                           the whole story, which the tests run
//   resume CHECKPOINT [STEPS]        trains to the end, or kills itself behind STEPS steps
#include <forebay/array.h>
#include <forebay/pipeline.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>

#include <sys/wait.h>
#include <unistd.h>

using namespace forebay;

namespace {

constexpr int kEpochs = 3, kFeatures = 4;

/// 100 points on a plane, shuffled, in batches of 8: 13 steps an epoch.
Pipeline make_pipeline() {
  std::vector<float> x(100 * kFeatures), y(100);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(i * 37 % 101) / 50;
    y[i / kFeatures] += x[i] * static_cast<float>(i % kFeatures);
  }
  return Pipeline::build()
      .source(array_source({{"x", Array::from({100, kFeatures}, x)}, {"y", Array::from({100}, y)}}))
      .batch_size(8)
      .device(Device::cpu())
      .shuffle(ShuffleMode::full)
      .scale({.factor = 0.5})
      .create();
}

/// What a run has learnt, and from which samples: kept together, or they would not fit each other.
struct Checkpoint {
  std::vector<double> weights = std::vector<double>(kFeatures);
  std::string state;

  void load(const std::string& path) {
    std::ifstream file(path);
    std::string line;
    for (double& weight : weights)
      if (std::getline(file, line)) weight = std::strtod(line.c_str(), nullptr);
    std::getline(file, state);
  }

  /// Whole or not at all: a name that exists is replaced in one go.
  void save(const std::string& path) const {
    std::ofstream file(path + ".part");
    file << std::hexfloat;
    for (const double weight : weights)
      file << weight << '\n';
    file << state << '\n';
    file.close();
    std::filesystem::rename(path + ".part", path);
  }
};

/// A step of gradient descent on the squared error.
void learn(std::vector<double>& weights, const Batch& batch) {
  const Array x = batch["x"], y = batch["y"];
  std::vector<double> gradient(weights.size());
  for (std::int64_t row = 0; row < batch.rows(); ++row) {
    const float* features = x.as<float>() + row * kFeatures;
    double error = -y.as<float>()[row];
    for (std::size_t i = 0; i < weights.size(); ++i)
      error += weights[i] * features[i];
    for (std::size_t i = 0; i < weights.size(); ++i)
      gradient[i] += error * features[i] / static_cast<double>(batch.rows());
  }
  for (std::size_t i = 0; i < weights.size(); ++i)
    weights[i] -= 0.1 * gradient[i];
}

/// Goes on from the checkpoint if there is one. `steps`: behind so many the process dies; 0: never.
void train(const std::string& path, int steps) {
  Pipeline pipeline = make_pipeline();
  Checkpoint checkpoint;
  if (std::filesystem::exists(path)) {
    checkpoint.load(path);
    pipeline.restore(checkpoint.state);
  }
  for (std::int64_t epoch = pipeline.position().epoch; epoch < kEpochs; ++epoch) {
    for (const Batch& batch : pipeline.epoch(epoch)) {
      learn(checkpoint.weights, batch);
      checkpoint.state = pipeline.state();  // behind this batch, whatever has been read ahead
      checkpoint.save(path);
      if (--steps == 0) std::raise(SIGKILL);
    }
  }
}

/// Trains in processes that live for `steps` steps each. Returns how many it took.
int train_in_pieces(const char* program, const std::string& path, int steps) {
  for (int lives = 1;; ++lives) {
    const pid_t child = fork();
    if (child == 0) {
      execl(program, program, path.c_str(), std::to_string(steps).c_str(), nullptr);
      _exit(127);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFEXITED(status)) return WEXITSTATUS(status) == 0 ? lives : 0;
  }
}

bool whole_story(const char* program) {
  std::string folder = (std::filesystem::temp_directory_path() / "resume-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return false;
  Checkpoint straight;
  train(folder + "/straight", 0);
  straight.load(folder + "/straight");
  bool same = true;
  for (const int steps : {1, 7, 30}) {
    const std::string path = folder + "/killed-" + std::to_string(steps);
    const int lives = train_in_pieces(program, path, steps);
    Checkpoint pieces;
    pieces.load(path);
    const bool equal = lives > 0 && pieces.weights == straight.weights;
    std::cout << "killed behind every " << steps << " steps: " << lives << " lives, "
              << (equal ? "the same weights\n" : "OTHER weights\n");
    same = same && equal;
  }
  std::filesystem::remove_all(folder);
  return same;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc == 1) return whole_story("/proc/self/exe") ? 0 : 1;
  train(argv[1], argc > 2 ? std::atoi(argv[2]) : 0);
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
