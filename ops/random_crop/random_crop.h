#pragma once

#include <forebay/ops/random.h>
#include <forebay/ops/sample_move.h>

namespace forebay {

/// Settings of random_crop. `size` and `padding` have one entry for each of `axes`, or one for all.
struct RandomCrop {
  std::vector<std::int64_t> axes = {};
  std::vector<std::int64_t> size = {};
  std::vector<std::int64_t> padding = {0};  ///< on either side
  Number value = 0;                         ///< of what is padded
  std::optional<std::int64_t> stream = {};
  void fields(FieldVisitor& visitor);
};

/// Keeps `size` neighbours along axes of each sample, from a place drawn for the sample.
///
///     out[s, .., i, ..] = x[s, .., start + i, ..], or `value` outside of x
///     start uniform in -padding .. n + padding - size: (word * places >> 32) - padding
///
/// Randomness: each sample has a random word for each axis, a function of (axis, sample, epoch, op)
///          alone: see random.h. Of n places, none is likelier than another by more than n / 2^32 of
///          its share.
/// Shapes:  out as x with `size` on `axes`; axis 0 runs over the samples.
/// Dtypes:  all; out as x. `value` is converted as cast does, and must be a whole number in the
///          range of an integer x.
/// Devices: cpu, cuda; the same bits.
/// Errors:  invalid without axes, for axis 0, for one that is not there or named twice, for a size
///          below 1 or larger than the padded axis, a negative padding, lists that have neither one
///          entry nor as many as `axes`, a value that x cannot hold, and sample ids that do not fit
///          axis 0.
/// Source:  torchvision.transforms.RandomCrop with constant padding, for a batch.
Array random_crop(const Array& x, const RandomCrop& settings, const Draw& draw,
                  const Context& context);

namespace random_crop_detail {
SampleMove move_of(const RandomCrop& settings, const Dims& shape);
}

}  // namespace forebay
