#pragma once

#include <forebay/ops/eager.h>

namespace forebay {

/// Settings of broadcast_to.
struct BroadcastTo {
  std::vector<std::int64_t> shape = {};  ///< of the whole batch array; -1 keeps x's extent
  void fields(FieldVisitor& visitor);
};

/// Repeats axes of extent 1, and adds axes in front, to `shape`. An index map: with pointwise
/// neighbours, and in front of a kernel op that takes them in, nothing is repeated in memory.
///
///     out[i, j, ..] = x[.., j or 0, ..]
///
/// Shapes:  out is `shape`, which NumPy's rule compares with x's from the last axis on; -1 is x's
///          extent there.
/// Dtypes:  all; out as x.
/// Devices: cpu, cuda; the same bits.
/// Errors:  invalid when x does not broadcast to `shape`, and for -1 where x has no axis.
/// Source:  numpy.broadcast_to; torch.Tensor.expand for -1.
Array broadcast_to(const Array& x, const BroadcastTo& settings, const Context& context);

}  // namespace forebay
