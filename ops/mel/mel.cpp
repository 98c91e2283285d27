#include <forebay/ops/mel/mel.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <forebay/array/require.h>
#include <forebay/ops/checks.h>

namespace forebay {
namespace {

constexpr std::array<std::string_view, 2> kScales = {"htk", "slaney"};
constexpr std::int64_t kMostBins = std::numeric_limits<std::int32_t>::max();
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

/// Through memory: GCC 12 leaves out conversions to float and back of two neighbours that it
/// vectorises.
double as_f32(double value) {
  const volatile float rounded = static_cast<float>(value);
  return rounded;
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
  FOREBAY_REQUIRE(bins <= kMostBins, invalid,
                  "mel: `x` of shape {} has {} frequencies along its last axis; it may have at "
                  "most {}.",
                  to_string(shape), bins, kMostBins);
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
  Dims out = shape;
  out[shape.rank - 1] = settings.n_mels;
  return {{dtype, out}};
}

Fusion fuses(const void*, const Problem&, DeviceKind) {
  return {.prologue = true, .epilogue = true};
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
}

MelSides mel_sides(const Mel& settings, std::int64_t bins) {
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
  const auto height = [&](std::size_t band) {
    return settings.norm == MelNorm::slaney ? 2 / (corners[band + 2] - corners[band]) : 1;
  };
  MelSides sides;
  sides.weights.resize(static_cast<std::size_t>(bins));
  std::int64_t k = 0;
  for (std::size_t i = 0; i < corners.size(); ++i) {
    for (; k < bins && static_cast<double>(k) * hz_per_bin < corners[i]; ++k) {
      if (i == 0) continue;
      const double hz = static_cast<double>(k) * hz_per_bin, begin = corners[i - 1],
                   width = corners[i] - begin;
      MelSides::Weights& weights = sides.weights[static_cast<std::size_t>(k)];
      if (i >= 2) weights.falling = (corners[i] - hz) / width * height(i - 2);
      if (i <= bands) weights.rising = (hz - begin) / width * height(i - 1);
    }
    sides.corners.push_back(k);
  }
  return sides;
}

MelSides mel_sides(const Mel& settings, const ArraySpec& x) {
  MelSides sides = mel_sides(settings, x.shape[x.shape.rank - 1]);
  if (x.dtype == Dtype::f64) return sides;
  for (auto& [falling, rising] : sides.weights) {
    falling = as_f32(falling);
    rising = as_f32(rising);
  }
  return sides;
}

std::vector<double> mel_filters(const Mel& settings, std::int64_t bins) {
  const MelSides sides = mel_sides(settings, bins);
  const std::int64_t bands = settings.n_mels;
  std::vector<double> filters(static_cast<std::size_t>(bins * bands));
  for (std::int64_t i = 0; i <= bands; ++i) {
    const auto corner = sides.corners.begin() + i;
    for (std::int64_t k = corner[0]; k < corner[1]; ++k) {
      const auto [falling, rising] = sides.weights[static_cast<std::size_t>(k)];
      if (i > 0) filters[static_cast<std::size_t>(k * bands + i - 1)] = falling;
      if (i < bands) filters[static_cast<std::size_t>(k * bands + i)] = rising;
    }
  }
  return filters;
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
