#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <forebay/ops/eager.h>

namespace forebay {

enum class MelScale : std::uint8_t { htk, slaney };
enum class MelNorm : std::uint8_t { none, slaney };
std::span<const std::string_view> names_of(MelScale);
std::span<const std::string_view> names_of(MelNorm);

/// Settings of mel. Frequencies are in Hz.
struct Mel {
  double sample_rate = 0;
  std::int64_t n_mels = 128;
  double fmin = 0;
  std::optional<double> fmax = {};  ///< half of sample_rate when not given
  MelScale scale = MelScale::htk;
  MelNorm norm = MelNorm::none;
  std::optional<std::int64_t> n_fft =
      {};  ///< of the transform before; 2 * (bins - 1) when not given
  void fields(FieldVisitor& visitor);
};

/// Sums the bins of a spectrum into mel bands: a product with a matrix of triangular filters.
///
///     out[.., m] = sum over k of x[.., k] * w[k, m]
///
/// Formula of w: in ops/mel/README.md, computed in f64.
/// Shapes:  x [.., bins] with bins = n_fft / 2 + 1, at least 2; out [.., n_mels].
/// Dtypes:  x floats; out as x. w is rounded to f32, or f64 when x is; sums in f64, rounded once.
/// Devices: cpu, cuda; the same bits.
/// Errors:  unsupported for other dtypes; invalid for bins that are not those of n_fft or more than
///          2^31 - 1, and for fmin and fmax that are not 0 <= fmin < fmax <= sample_rate / 2.
/// Source:  librosa.filters.mel, torchaudio.functional.melscale_fbanks.
Array mel(const Array& x, const Mel& settings, const Context& context);

/// w as a dense matrix (bins, n_mels), in f64.
std::vector<double> mel_filters(const Mel& settings, std::int64_t bins);

/// w by frequency. One between corners i and i + 1 lies on the falling side of band i - 1 and on
/// the rising side of band i, and nowhere else.
struct MelSides {
  struct Weights {
    double falling = 0, rising = 0;  ///< 0 where there is no such band
  };
  std::vector<std::int64_t> corners;  ///< [n_mels + 2]: the first frequency at or above each
  std::vector<Weights> weights;       ///< [bins]
};
MelSides mel_sides(const Mel& settings, std::int64_t bins);
/// The same, rounded to what x of `dtype` is multiplied with.
MelSides mel_sides(const Mel& settings, const ArraySpec& x);

}  // namespace forebay
