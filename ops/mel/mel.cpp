#include <forebay/ops/mel/mel.h>

#include <algorithm>
#include <array>
#include <cmath>

#include <forebay/array/require.h>
#include <forebay/ops/checks.h>

namespace forebay {
namespace {

constexpr std::array<std::string_view, 2> kScales = {"htk", "slaney"};
constexpr std::array<std::string_view, 2> kNorms = {"none", "slaney"};

// Slaney's scale is linear up to 1000 Hz, which is 15 mel, and then grows by a factor of 6.4 in 27
// mel.
constexpr double kHzPerMel = 200.0 / 3, kBreakHz = 1000, kBreakMel = kBreakHz / kHzPerMel;
double growth() { return std::log(6.4) / 27; }

double mel_of(double hz, MelScale scale) {
  if (scale == MelScale::htk) return 2595 * std::log10(1 + hz / 700);
  return hz < kBreakHz ? hz / kHzPerMel : kBreakMel + std::log(hz / kBreakHz) / growth();
}

double hz_of(double mel, MelScale scale) {
  if (scale == MelScale::htk) return 700 * (std::pow(10, mel / 2595) - 1);
  return mel < kBreakMel ? mel * kHzPerMel : kBreakHz * std::exp((mel - kBreakMel) * growth());
}

double highest(const Mel& settings) { return settings.fmax.value_or(settings.sample_rate / 2); }

std::int64_t transform_length(const Mel& settings, std::int64_t bins) {
  return settings.n_fft.value_or(2 * (bins - 1));
}

std::vector<ArraySpec> infer(const Mel& settings, std::span<const ArraySpec> inputs) {
  const auto& [dtype, shape] = inputs[0];
  check_dtype("mel", "x", dtype, kFloats);
  FOREBAY_REQUIRE(settings.sample_rate > 0, invalid,
                  "mel: `sample_rate` is {}; it must be above 0.", settings.sample_rate);
  const std::int64_t bins = shape[axis_of("mel", -1, shape)];
  FOREBAY_REQUIRE(bins >= 2, invalid,
                  "mel: `x` of shape {} has {} frequencies along its last axis; it must have at "
                  "least 2. Take an `rfft` before it.",
                  to_string(shape), bins);
  FOREBAY_REQUIRE(
      transform_length(settings, bins) / 2 + 1 == bins, invalid,
      "mel: `n_fft` is {}, which gives {} frequencies, but `x` of shape {} has {} along "
      "its last axis.",
      *settings.n_fft, *settings.n_fft / 2 + 1, to_string(shape), bins);
  FOREBAY_REQUIRE(
      settings.fmin < highest(settings) && highest(settings) <= settings.sample_rate / 2, invalid,
      "mel: `fmin` is {} and `fmax` {}; fmin must be below fmax, and fmax at most half "
      "of `sample_rate`, {}.",
      settings.fmin, highest(settings), settings.sample_rate / 2);
  return mel_matmul(settings, inputs[0]).infer(inputs);
}

Fusion fuses(const void* settings, const Problem& problem, DeviceKind device) {
  const Op product = mel_matmul(*static_cast<const Mel*>(settings), problem.inputs[0]);
  const auto says = product.entry().def.fuses;
  return says == nullptr ? Fusion{} : says(product.raw_settings(), problem, device);
}

bool mixes_samples(const void*, std::span<const ArraySpec> inputs) {
  return inputs[0].shape.rank < 2;
}

}  // namespace

std::span<const std::string_view> names_of(MelScale) { return kScales; }
std::span<const std::string_view> names_of(MelNorm) { return kNorms; }

void Mel::fields(FieldVisitor& visitor) {
  visitor.on({.name = "sample_rate",
              .doc = "Samples a second of the signal, in Hz.",
              .alias = "sr",
              .min = 0,
              .required = true},
             sample_rate);
  visitor.on({.name = "n_mels", .doc = "How many bands.", .min = 1, .max = 65536}, n_mels);
  visitor.on(
      {.name = "fmin", .doc = "Where the first band begins, in Hz.", .alias = "f_min", .min = 0},
      fmin);
  visitor.on({.name = "fmax",
              .doc = "Where the last band ends, in Hz; half of sample_rate when left out.",
              .alias = "f_max"},
             fmax);
  visitor.on({.name = "scale", .doc = "Whose formula of the mel scale.", .alias = "mel_scale"},
             scale);
  visitor.on(
      {.name = "norm",
       .doc = "slaney divides each band by half its width in Hz; none leaves the peaks at 1."},
      norm);
  visitor.on({.name = "n_fft",
              .doc = "Length of the transform before, where it is odd; else it is known from the "
                     "number of frequencies.",
              .min = 2},
             n_fft);
  visitor.on({.name = "compute",
              .doc = "What f32 is rounded to before it is multiplied; see `matmul`.",
              .alias = "compute_dtype"},
             compute);
}

std::vector<double> mel_filters(const Mel& settings, std::int64_t bins) {
  const auto bands = static_cast<std::size_t>(settings.n_mels);
  const double low = mel_of(settings.fmin, settings.scale);
  const double high = mel_of(highest(settings), settings.scale);
  std::vector<double> corners(bands + 2);  // where band m begins, peaks and ends: m, m + 1, m + 2
  for (std::size_t i = 0; i < corners.size(); ++i) {
    const double part = static_cast<double>(i) / static_cast<double>(bands + 1);
    corners[i] = hz_of(low + (high - low) * part, settings.scale);
  }
  const double hz_per_bin =
      settings.sample_rate / static_cast<double>(transform_length(settings, bins));
  std::vector<double> filters;
  filters.reserve(static_cast<std::size_t>(bins) * bands);
  for (std::int64_t k = 0; k < bins; ++k) {
    const double hz = static_cast<double>(k) * hz_per_bin;
    for (std::size_t m = 0; m < bands; ++m) {
      const double begin = corners[m], peak = corners[m + 1], end = corners[m + 2];
      const double weight =
          std::max(0.0, std::min((hz - begin) / (peak - begin), (end - hz) / (end - peak)));
      filters.push_back(settings.norm == MelNorm::slaney ? weight * 2 / (end - begin) : weight);
    }
  }
  return filters;
}

Op mel_matmul(const Mel& settings, const ArraySpec& x) {
  const std::int64_t bins = x.shape[x.shape.rank - 1];
  const std::vector<double> filters = mel_filters(settings, bins);
  const Dims shape{bins, settings.n_mels};
  Matmul product{.compute = settings.compute, .dtype = x.dtype};
  product.other = x.dtype == Dtype::f64
                      ? Array::from(shape, filters)
                      : Array::from(shape, std::vector<float>(filters.begin(), filters.end()));
  return Op::with(find_op("matmul"), product);
}

OpDef mel_def() {
  OpDef def = define_op<Mel, infer>({
      .name = "mel",
      .summary = "Sums the frequencies of a spectrum into mel bands.",
      .alias = "mel_scale",
      .example = "{op: mel, sample_rate: 16000, n_mels: 4}",
  });
  def.fuses = fuses;
  def.mixes_samples = mixes_samples;
  return def;
}

Array mel(const Array& x, const Mel& settings, const Context& context) {
  return run_single("mel", settings, {x}, context);
}

}  // namespace forebay
