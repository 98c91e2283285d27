#pragma once

#include <forebay/array/array.h>
#include <forebay/pipeline.h>

namespace forebay::bench {

/// Numbers to measure with: a hash of the element's position, spread evenly over [low, high); the
/// same on every machine. `low` for all when both are equal. Integers: rounded down.
struct Data {
  Dims shape;
  Dtype dtype = Dtype::f32;
  double low = -5, high = 7;
};

/// A dense host array of them.
Array make(const Data& data);
/// A source of `data.shape[0]` samples with one column `x`. Nothing is made before it is read.
SourcePtr source_of(const Data& data);
/// A pipeline whose one batch is all of `data`: add stages to it.
PipelineBuilder on(const Data& data);

}  // namespace forebay::bench
