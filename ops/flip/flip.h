#pragma once

#include <forebay/ops/eager.h>

namespace forebay {

/// Settings of flip.
struct Flip {
  std::vector<std::int64_t> axes = {};
  void fields(FieldVisitor& visitor);
};

/// Reverses the order of the elements along some axes. An index map: with pointwise neighbours, and
/// in front of a kernel op that takes them in, it is part of their kernel, not a pass of its own.
///
///     out[.., i, ..] = x[.., n - 1 - i, ..]
///
/// Shapes:  out as x.
/// Dtypes:  all; out as x.
/// Devices: cpu, cuda; the same bits.
/// Errors:  invalid without axes, for one that is not there and for one named twice.
/// Source:  torch.flip; numpy.flip with axes.
Array flip(const Array& x, const Flip& settings, const Context& context);

}  // namespace forebay
