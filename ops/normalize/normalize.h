#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <forebay/ops/eager.h>
#include <forebay/ops/op.h>
#include <forebay/ops/slices.h>

namespace forebay {

/// Where `epsilon` enters: sqrt(var + epsilon), std + epsilon, or max(std, epsilon).
enum class EpsilonPlace : std::uint8_t { variance, std, floor };
std::span<const std::string_view> names_of(EpsilonPlace);

/// What a divisor of 0 gives: what IEEE division gives (NaN or infinity), 0, or an error before any
/// data is touched (which needs a constant `std`).
enum class ZeroStd : std::uint8_t { divide, zero, error };
std::span<const std::string_view> names_of(ZeroStd);

/// Settings of normalize. A mean or std that is not given is computed from the data.
struct Normalize {
  std::optional<Reals> mean = {};
  std::optional<Reals> std = {};
  std::optional<std::vector<std::int64_t>> axes = {};
  Layout layout = Layout::none;
  bool per_sample = false;
  std::int64_t ddof = 0;
  double epsilon = 0;
  EpsilonPlace epsilon_place = EpsilonPlace::variance;
  ZeroStd zero_std = ZeroStd::divide;
  std::optional<Dtype> dtype = {};

  void fields(FieldVisitor& visitor);
};

/// Shifts and scales: by constants, or to mean 0 and standard deviation 1.
///
///     out = (x - mean) / d,   d = std, with epsilon: sqrt(std^2 + epsilon), std + epsilon or
///     max(std, epsilon) computed over the n elements of a slice:  mean = sum(x) / n,   std =
///     sqrt(sum((x - mean)^2) / (n - ddof))
///
/// A slice is what the axes of the statistics span: `axes`; without it all but the channels of
/// `layout`; without either the whole array. `per_sample` keeps axis 0 besides. `mean` and `std`
/// have one value, or one for each index of the axes that slices keep (not the batch axis 0, unless
/// it is the only one). With only one of them given the other is computed; std is then the root
/// mean square distance from the given mean.
///
/// Shapes:  any, the output's is the same.
/// Dtypes:  bool, integers, f16, bf16, f32, f64; the output is x's dtype when that is a float, else
/// f32, or `dtype`.
///          Constants: computed in the output's dtype, f32 for f16 and bf16. Statistics: sums in
///          f64, integers exact.
/// NaN and infinity in a slice, and ddof >= n, make the slice NaN.
/// Devices: cpu, cuda. Enqueues and returns.
/// Errors:  invalid for settings that contradict x or each other; unsupported for a complex x.
/// Source:  NumPy's mean and std over axes; the given mean as in `numpy.std(mean=)` and DALI's
/// Normalize.
inline Array normalize(const Array& x, const Normalize& settings, const Context& context) {
  return run_single("normalize", settings, {x}, context);
}

}  // namespace forebay
