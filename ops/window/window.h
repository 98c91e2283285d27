#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include <forebay/ops/eager.h>

namespace forebay {

enum class WindowKind : std::uint8_t {
  boxcar,
  bartlett,
  hann,
  hamming,
  blackman,
  nuttall,
  blackmanharris,
  flattop,
  kaiser,
};
std::span<const std::string_view> names_of(WindowKind);

/// Settings of window.
struct Window {
  WindowKind kind = WindowKind::hann;
  bool periodic =
      true;  ///< one period of the window, as spectra want it; false: symmetric, for filters
  double beta = 12;  ///< of kaiser
  std::int64_t axis = -1;
  std::optional<Dtype> dtype = {};
  void fields(FieldVisitor& visitor);
};

/// Multiplies an axis by a window function.
///
///     out[.., i, ..] = x[.., i, ..] * w[i],   i = 0 .. n - 1
///
/// Formula of w: in ops/window/README.md, computed in f64.
/// Shapes:  out as x, any rank of at least 1.
/// Dtypes:  x bool, integers and floats; out as x when that is a float, else f32, or the float type
///          `dtype`. w is rounded to f32, or f64 when x or out is; the product is computed in that
///          type and rounded once.
/// Devices: cpu, cuda; the same bits.
/// Errors:  unsupported for complex x; invalid for an axis that is not there and for a `dtype` that
///          is no float type.
/// Source:  scipy.signal.get_window (periodic is its fftbins); torch.hann_window and its kin.
Array window(const Array& x, const Window& settings, const Context& context);

/// w[0 .. n - 1].
std::vector<double> window_values(const Window& settings, std::int64_t n);

}  // namespace forebay
