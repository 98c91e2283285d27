#pragma once

#include <forebay/ops/random.h>
#include <forebay/ops/sample_move.h>

namespace forebay {

/// Settings of random_flip.
struct RandomFlip {
  std::vector<std::int64_t> axes = {};
  double p = 0.5;  ///< the probability that an axis is reversed
  std::optional<std::int64_t> stream = {};
  void fields(FieldVisitor& visitor);
};

/// Reverses the order of a sample's elements along axes, each with probability p by itself.
///
///     out[s, .., i, ..] = x[s, .., n - 1 - i, ..] if word < p * 2^32, else x[s, .., i, ..]
///
/// Randomness: each sample has a random word for each axis, a function of (axis, sample, epoch, op)
///          alone: see random.h.
/// Shapes:  out as x; axis 0 runs over the samples.
/// Dtypes:  all; out as x.
/// Devices: cpu, cuda; the same bits.
/// Errors:  invalid without axes, for axis 0, for one that is not there or named twice, and for
///          sample ids that do not fit axis 0.
/// Source:  torchvision's RandomHorizontalFlip and RandomVerticalFlip, for a batch.
Array random_flip(const Array& x, const RandomFlip& settings, const Draw& draw,
                  const Context& context);

namespace random_flip_detail {
SampleMove move_of(const RandomFlip& settings, const Dims& shape);
}

}  // namespace forebay
