#pragma once

#include <optional>

#include <forebay/ops/random.h>

namespace forebay {

/// Settings of dropout_mask.
struct DropoutMask {
  double p = 0.5;                ///< the probability that an element is dropped
  Dtype dtype = Dtype::boolean;  ///< bool or a float type
  bool scale = false;            ///< what is kept is 1 / (1 - p) instead of 1
  std::optional<std::int64_t> stream = {};
  void fields(FieldVisitor& visitor);
};

/// Says which elements to keep, each by itself: 1 (true) with probability 1 - p, else 0.
///
///     out = word >= p * 2^32, times 1 / (1 - p) with `scale`
///
/// Randomness: each element has a random word of its own, a function of (element, sample, epoch,
///          op) alone: see random.h.
/// Shapes:  out as x, of which only the shape counts; axis 0 runs over the samples.
/// Dtypes:  x all; out bool, or the float type `dtype`.
/// Devices: cpu, cuda; the same bits.
/// Errors:  invalid for a scalar x, a `dtype` that is neither bool nor a float type, `scale` with
///          bool or with p = 1, and sample ids that do not fit axis 0.
/// Source:  torch.nn.Dropout, whose mask it is with `scale`.
Array dropout_mask(const Array& x, const DropoutMask& settings, const Draw& draw,
                   const Context& context);

}  // namespace forebay
