#pragma once

#include <forebay/ops/eager.h>

namespace forebay {

/// Settings of reshape.
struct Reshape {
  std::vector<std::int64_t> shape = {};  ///< of the whole batch array; one extent may be -1
  void fields(FieldVisitor& visitor);
};

/// The same elements, in row-major order, under another shape.
///
/// Shapes:  out is `shape`, whose -1 is what the number of elements leaves: `[-1, 784]` flattens
/// the samples of a batch
///          of any size. Dense.
/// Dtypes:  all; out as x.
/// Devices: cpu, cuda; the same bits.
/// Errors:  invalid when the number of elements does not fit.
/// Source:  numpy.reshape (order C).
Array reshape(const Array& x, const Reshape& settings, const Context& context);

}  // namespace forebay
