// Pipelines built in C++: one over an array in memory, one over a function of the program.
#include <forebay/array.h>
#include <forebay/pipeline.h>

#include <cmath>
#include <cstdio>

using namespace forebay;

namespace {

/// Normalized images from memory, shuffled: the mean of all of them is 0 again.
bool from_memory() {
  std::vector<std::uint8_t> pixels(100 * 8 * 8);
  for (std::size_t i = 0; i < pixels.size(); ++i)
    pixels[i] = static_cast<std::uint8_t>(i % 2 ? 255 : 0);
  const Array images = Array::from({100, 8, 8}, pixels);

  Pipeline pipeline = Pipeline::build()
                          .source(array_source({{"image", images}}))
                          .batch_size(32)
                          .device(Device::cpu())
                          .shuffle(ShuffleMode::full)
                          .normalize({.mean = 127.5, .std = 127.5})
                          .clip({.min = -3, .max = 3})
                          .create();
  double sum = 0;
  std::int64_t rows = 0;
  for (Batch& batch : pipeline.epoch(0)) {
    const Array image = batch["image"];
    for (std::int64_t i = 0; i < image.count(); ++i)
      sum += image.as<float>()[i];
    rows += batch.rows();
  }
  std::printf("from memory: %lld images, sum %g\n", static_cast<long long>(rows), sum);
  return rows == 100 && sum == 0;
}

/// Sine waves made one by one, on several threads, and their spectra: sample i has its peak at i
/// + 1.
bool from_function() {
  const auto wave = [](std::int64_t index, std::span<const ArrayView> sample) {
    for (int t = 0; t < 64; ++t) {
      sample[0].as<float>()[t] =
          static_cast<float>(std::sin(2 * M_PI * static_cast<double>((index + 1) * t) / 64));
    }
  };
  Pipeline pipeline = Pipeline::build()
                          .source(callback_source(30, {{"wave", Dtype::f32, {64}}}, wave))
                          .batch_size(8)
                          .device(Device::cpu())
                          .rfft({}, {.outputs = {"spectrum"}})
                          .abs()
                          .output({"spectrum"})
                          .create();
  int right = 0;
  for (Batch& batch : pipeline.epoch(0)) {
    const Array spectrum = batch["spectrum"];  // [rows, 33] f32
    for (std::int64_t row = 0; row < batch.rows(); ++row) {
      const float* values = spectrum.as<float>() + row * 33;
      if (std::max_element(values, values + 33) - values == batch.sample_ids()[row] + 1) ++right;
    }
  }
  std::printf("from a function: %d of 30 peaks found\n", right);
  return right == 30;
}

}  // namespace

int main() try {
  return from_memory() && from_function() ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
