// The table of what is measured. bench/peers/works.py and its kin say the same for the peers, and
// each result of a peer is checked against ours before it is timed.

#include "rows.h"

#include <forebay/array/require.h>

namespace forebay::bench {
namespace {

constexpr std::int64_t kBins = 256, kRowBins = 64;
constexpr double kLow = -5, kHigh = 7;  // of the numbers, and so of the histograms' ranges

std::int64_t pick(Size size, std::int64_t gpu, std::int64_t cpu, std::int64_t smoke) {
  return size == Size::gpu ? gpu : size == Size::cpu ? cpu : smoke;
}

/// As many rows of `width` numbers as make 256 MiB on a GPU.
Data numbers(Size size, std::int64_t width = 1024) {
  const std::int64_t count = pick(size, 1 << 26, 1 << 25, 1 << 14);
  return {.shape = {count / width, width}, .low = kLow, .high = kHigh};
}

double bytes_of(const Data& data) {
  return static_cast<double>(count_of(data.shape)) * static_cast<double>(size_of(data.dtype));
}

/// A work that writes `written` bytes for each byte that it reads.
Work moving(const Data& data, double written) {
  return {
      .data = data, .pipeline = on(data), .constants = {}, .bytes = bytes_of(data) * (1 + written)};
}

PipelineBuilder& normclip(PipelineBuilder& pipeline) {
  return pipeline.normalize({.mean = 1, .std = 2}).clip({.min = -3, .max = 3});
}

Work image(Size size) {
  const std::int64_t side = pick(size, 224, 224, 16);
  const Data data{.shape = {pick(size, 1024, 256, 2), side, side, 3},
                  .dtype = Dtype::u8,
                  .low = 0,
                  .high = 256};
  Work work = moving(data, 2);
  work.pipeline
      .normalize({.mean = Reals{123.675, 116.28, 103.53},
                  .std = Reals{58.395, 57.12, 57.375},
                  .layout = Layout::nhwc})
      .clip({.min = -3, .max = 3})
      .permute({.axes = {0, 3, 1, 2}})
      .cast({.dtype = Dtype::f16});
  work.relative = work.absolute = 2e-3;
  return work;
}

Work normalized(Size size) {
  Work work = moving(numbers(size), 1);
  normclip(work.pipeline);
  return work;
}

Work standardized_rows(Size size) {
  Work work = moving(numbers(size), 1);
  work.pipeline.normalize({.axes = {{1}}, .epsilon = 1e-5, .epsilon_place = EpsilonPlace::std});
  return work;
}

Work standardized(Size size) {
  Work work = moving(numbers(size), 1);
  work.bytes *= 1.5;  // nothing holds the array between its statistics and their use
  work.pipeline.normalize({.ddof = 1});
  return work;
}

/// x by a constant [1024, 1024].
Array weights(const Data& x) { return make({{x.shape[1], 1024}, Dtype::f32, -1.0 / 16, 1.0 / 16}); }

Work product(Size size) {
  Data data = numbers(size);
  if (size == Size::cpu) data.shape[0] = 4096;
  const Array other = weights(data);
  Work work = moving(data, 0.5);
  work.constants = {{"other", other}};
  work.flops = 2.0 * static_cast<double>(count_of(data.shape)) * 1024;
  work.compute = Compute::bf16;
  normclip(work.pipeline).matmul({.other = other, .compute = Compute::bf16, .dtype = Dtype::bf16});
  work.relative = 0.02;
  work.absolute = 0.1;
  return work;
}

Work log_power(Size size, std::int64_t length) {
  Work work = moving(numbers(size, length),
                     static_cast<double>(length / 2 + 1) / static_cast<double>(length));
  normclip(work.pipeline).rfft({}).expr({.expr = "log1p(norm(x))"});
  work.relative = work.absolute = 1e-3;
  return work;
}

constexpr std::int64_t kMels = 80, kFrame = 400, kHop = 160;

Array constant(const Dims& shape, const std::vector<double>& values) {
  return Array::from<float>(shape, std::vector<float>(values.begin(), values.end()));
}

Work log_mel(Size size) {
  const Data data{
      .shape = {pick(size, 256, 128, 2), pick(size, 160000, 160000, 1600)}, .low = -1, .high = 1};
  const std::int64_t frames = 1 + (data.shape[1] - kFrame) / kHop;
  const Mel mel{.sample_rate = 16000, .n_mels = kMels};
  const std::int64_t bins = kFrame / 2 + 1;
  Work work =
      moving(data, static_cast<double>(frames * kMels) / static_cast<double>(data.shape[1]));
  work.constants = {{"window", constant({kFrame}, window_values({}, kFrame))},
                    {"mel", constant({bins, kMels}, mel_filters(mel, bins))}};
  work.pipeline.frame({.length = kFrame, .hop = kHop})
      .window({})
      .rfft({})
      .expr({.expr = "norm(x)"})
      .mel(mel)
      .expr({.expr = "log(x + 1e-6)"});
  work.relative = work.absolute = 1e-3;
  return work;
}

Work counted(Size size, bool equal) {
  Data data = numbers(size);
  if (equal) data.low = data.high = 1.01;
  Work work = moving(data, 0);
  work.pipeline.histogram({.bins = kBins, .range = Reals{kLow, kHigh}});
  work.absolute = 64;  // values at edges, which peers compute otherwise
  return work;
}

Work counted_rows(Size size) {
  Work work = moving(numbers(size, pick(size, 16384, 16384, 1024)), 0);
  work.pipeline.histogram({.bins = kRowBins, .range = Reals{kLow, kHigh}, .per_sample = true});
  work.absolute = 4;
  return work;
}

Work seed_chain(Size size) {
  Data data = numbers(size);
  data.shape[0] = pick(size, 8192, 2048, 16);
  const Array other = weights(data);
  Work work = moving(data, 1);  // a read and a write of x; the product takes longer
  work.constants = {{"other", other}};
  work.flops = 2.0 * static_cast<double>(count_of(data.shape)) * 1024;
  work.compute = Compute::tf32;
  normclip(work.pipeline)
      .matmul({.other = other, .compute = Compute::tf32})
      .fft({})
      .abs({})
      .histogram({.bins = 64, .range = Reals{0, 200}});
  work.relative = 0.02;
  work.absolute = 100;
  return work;
}

/// The first `steps` of twelve pointwise ops; CHAIN in peers/works.py.
Work chain(Size size, int steps) {
  using Add = void (*)(PipelineBuilder&);
  static constexpr Add kSteps[] = {
      [](PipelineBuilder& p) { p.normalize({.mean = 1, .std = 2}); },
      [](PipelineBuilder& p) { p.clip({.min = -3, .max = 3}); },
      [](PipelineBuilder& p) { p.scale({.factor = 1.5, .offset = 0.25}); },
      [](PipelineBuilder& p) { p.abs(); },
      [](PipelineBuilder& p) { p.sqrt(); },
      [](PipelineBuilder& p) { p.scale({.factor = 0.5, .offset = 1}); },
      [](PipelineBuilder& p) { p.log1p(); },
      [](PipelineBuilder& p) { p.scale({.factor = 2, .offset = -0.5}); },
      [](PipelineBuilder& p) { p.clip({.min = -1, .max = 1.5}); },
      [](PipelineBuilder& p) { p.exp(); },
      [](PipelineBuilder& p) { p.scale({.factor = 0.1}); },
      [](PipelineBuilder& p) { p.clip({.min = 0.12, .max = 0.4}); },
  };
  Work work = moving(numbers(size), 1);
  for (int i = 0; i < steps; ++i)
    kSteps[i](work.pipeline);
  return work;
}

std::vector<Row> make_rows() {
  std::vector<Row> rows = {
      {"image", "u8 NHWC to f16 NCHW, normalized per channel and clipped", 1.05, image},
      {"normclip", "normalize + clip, f32", 1.02, normalized},
      {"rowstd", "standardize per row", 1.03, standardized_rows},
      {"globalstd", "standardize over the whole array", 1.05, standardized},
      {"matmul_bf16", "normalize + clip + matmul in bf16", 1.35, product},
      {"rfft_1024", "normalize + clip + rfft + log power", 1.25,
       [](Size size) { return log_power(size, 1024); }},
      {"hist256", "histogram, 256 bins", 1.10, [](Size size) { return counted(size, false); }},
      {"hist256_equal", "histogram, 256 bins, all values equal", 1.10,
       [](Size size) { return counted(size, true); }},
      {"hist_rows", "histogram, 64 bins per row", 1.10, counted_rows},
      {"logmel", "log-mel: frame, window, rfft, power, mel, log", 6.0, log_mel},
      {"seed_chain", "normalize, clip, matmul in tf32, fft, abs, histogram", 2.5, seed_chain},
  };
  for (const std::int64_t length : {400, 512, 1000, 2048, 4096}) {
    rows.push_back({fmt::format("rfft_{}", length), "normalize + clip + rfft + log power", 1.4,
                    [length](Size size) { return log_power(size, length); }});
  }
  for (int steps = 1; steps <= 12; ++steps) {
    rows.push_back({fmt::format("chain_{}", steps), fmt::format("{} elementwise ops", steps), 0,
                    [steps](Size size) { return chain(size, steps); }});
  }
  return rows;
}

}  // namespace

const std::vector<Row>& rows() {
  static const std::vector<Row> table = make_rows();
  return table;
}

const Row& row(std::string_view id) {
  std::string ids;
  for (const Row& row : rows()) {
    if (row.id == id) return row;
    ids += (ids.empty() ? "" : ", ") + row.id;
  }
  fail(ErrorKind::invalid, "there is no row `{}`; there are {}.", id, ids);
}

}  // namespace forebay::bench
