#pragma once

#include <forebay/ops/eager.h>

namespace forebay {

/// Settings of crop: for each of `axes` a slice start:stop:step of NumPy's. Each list has one entry
/// for each axis, or one for all.
struct Crop {
  std::vector<std::int64_t> axes = {};
  std::vector<std::int64_t> start =
      {};  ///< empty: from the first (with a negative step from the last)
  std::vector<std::int64_t> stop = {};  ///< empty: to the end
  std::vector<std::int64_t> step = {1};
  void fields(FieldVisitor& visitor);
};

/// Keeps a part of some axes. An index map: with pointwise neighbours, and in front of a kernel op
/// that takes them in, it is part of their kernel, not a pass of its own.
///
///     out = x[.., start:stop:step, ..]
///
/// Shapes:  as NumPy's slices: positions below 0 count from the end, those outside are clamped, and
///          what is then empty has extent 0. `stop` is not part of the result.
/// Dtypes:  all; out as x.
/// Devices: cpu, cuda; the same bits.
/// Errors:  invalid for an axis that is not there or named twice, a step of 0, and lists that have
///          neither one entry nor as many as `axes`.
/// Source:  numpy's basic slicing; torch.narrow with a step.
Array crop(const Array& x, const Crop& settings, const Context& context);

}  // namespace forebay
