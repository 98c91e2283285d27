#pragma once

#include <optional>

#include <forebay/ops/random.h>

namespace forebay {

/// What noise is distributed like.
enum class NoiseKind : std::uint8_t { gaussian, uniform };
std::span<const std::string_view> names_of(NoiseKind kind);

/// Settings of noise. `mean` and `std` are for gaussian noise, `low` and `high` for uniform noise.
struct Noise {
  NoiseKind distribution = NoiseKind::gaussian;
  std::optional<double> mean = {};  ///< 0
  std::optional<double> std = {};   ///< 1
  std::optional<double> low = {};   ///< 0
  std::optional<double> high = {};  ///< 1
  std::optional<Dtype> dtype = {};
  std::optional<std::int64_t> stream = {};
  void fields(FieldVisitor& visitor);
};

/// Adds independent random numbers to the elements.
///
///     out = x + (mean + std * z)             z standard normal
///     out = x + (low + (high - low) * u)     u uniform in [0, 1)
///
/// Randomness: each element has random bits of its own, a function of (element, sample, epoch, op)
///          alone: see random.h.
/// Shapes:  out as x; axis 0 runs over the samples.
/// Dtypes:  x bool, integers and floats; out as x when that is a float, else f32, or the float type
///          `dtype`. Computed in f64 from 53 random bits (64 for z) when x or out is f64, else in
///          f32 from 24 (32) bits; then rounded to out.
/// Units:   the settings are in out's.
/// Devices: cpu, cuda; the same bits.
/// Errors:  unsupported for complex x; invalid for a scalar x, for a `dtype` that is no float type,
///          for settings of the other distribution, for `low` above `high`, and for sample ids that
///          do not fit axis 0.
/// Source:  numpy.random.Generator.normal and uniform; ops/noise/README.md says how z comes about.
Array noise(const Array& x, const Noise& settings, const Draw& draw, const Context& context);

}  // namespace forebay
