#pragma once

#include <forebay/ops/eager.h>

namespace forebay {

/// Settings of frame.
struct Frame {
  std::int64_t length = 0;  ///< elements of a frame
  std::int64_t hop = 0;     ///< elements from the start of one frame to that of the next
  std::int64_t axis = -1;
  void fields(FieldVisitor& visitor);
};

/// Cuts an axis into frames, which may overlap. An index map: with pointwise neighbours, and in
/// front of a kernel op that takes them in, no frame is ever written to memory.
///
///     out[.., f, i, ..] = x[.., f * hop + i, ..]
///
/// Shapes:  x [.., T, ..] with T on `axis`; out [.., frames, length, ..] with frames =
///          1 + (T - length) / hop, rounded down: what is behind the last whole frame is left out.
/// Dtypes:  all; out as x.
/// Devices: cpu, cuda; the same bits.
/// Errors:  invalid when `axis` does not exist or has fewer than `length` elements, and for x of
///          rank 8.
/// Source:  tf.signal.frame without padding; torch.Tensor.unfold, whose frames are the last axis;
///          torch.stft with center=False.
Array frame(const Array& x, const Frame& settings, const Context& context);

}  // namespace forebay
