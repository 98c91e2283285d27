#pragma once

// What the tests of kernel ops share: a prepared body, run on arrays.

#include "kit/kit.h"

#include <utility>
#include <vector>

#include <forebay/ops/op.h>

namespace forebay {

inline std::vector<ArrayView> views_of(const std::vector<Array>& arrays) {
  std::vector<ArrayView> views;
  for (const Array& array : arrays)
    views.push_back(array.view());
  return views;
}

/// Runs `body` from `inputs` into `outputs`, `times` times in a row, on the stream of `context`, and
/// waits.
inline void run_body(Body& body, const std::vector<ArrayView>& inputs,
                     const std::vector<ArrayView>& outputs, const Context& context, int times = 1) {
  const Array scratch = Array::empty({static_cast<std::int64_t>(body.scratch_bytes())}, Dtype::u8,
                                     context.scratch, context.stream);
  const auto task = [&] {
    for (int i = 0; i < times; ++i)
      body.run(inputs, outputs, {.stream = context.stream, .scratch = scratch.data()});
  };
  if (context.device().is_cuda()) {
    task();
  } else {
    context.stream.enqueue(task);
  }
  context.stream.synchronize();
}

/// All outputs of `problem` by `body`, on the host, from sources on the device.
inline std::vector<Array> results_of(Body& body, const Problem& problem,
                                     const std::vector<Array>& sources, const Context& context,
                                     int times = 1) {
  std::vector<Array> results;
  for (std::size_t i = 0; i < problem.outputs.size(); ++i) {
    const ArraySpec spec = i == 0 ? problem.stored() : problem.outputs[i];
    results.push_back(Array::empty(spec.shape, spec.dtype, context));
  }
  run_body(body, views_of(sources), views_of(results), context, times);
  for (Array& result : results)
    result = kit::to_host(result, context);
  return results;
}

}  // namespace forebay
