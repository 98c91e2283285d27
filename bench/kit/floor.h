#pragma once

#include <forebay/array/context.h>
#include <forebay/ops.h>

namespace forebay::bench {

/// The fastest copy of memory on a device: the copy engine's own on a GPU; on the CPU all cores of
/// the stream with stores that do not read what they overwrite.
class CopyFloor {
 public:
  /// Moves `bytes` in all: half are read, half are written.
  CopyFloor(double bytes, const Context& context);
  /// Milliseconds of one of `runs` copies.
  double time_ms(int runs) const;

 private:
  Context context_;
  Array source_, target_;
};

/// Operations a millisecond of a product of large square matrices, the best of a few.
double matrix_rate(Compute compute, std::int64_t side, const Context& context);

}  // namespace forebay::bench
