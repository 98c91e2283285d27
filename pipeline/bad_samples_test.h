#pragma once

// What the tests of bad samples share.

#include <algorithm>
#include <set>

#include <forebay/array/require.h>

#include "fixture_test.h"

namespace forebay::test {

using Ids = std::vector<std::int64_t>;

class BadSamplesTest : public PipelineTest {
 protected:
  /// Samples 0..size-1, of which those in `bad` cannot be read.
  static std::shared_ptr<CountingSource> source(std::int64_t size, std::set<std::int64_t> bad) {
    auto source = std::make_shared<CountingSource>(size);
    source->on_read_ = [bad = std::move(bad)](std::span<const std::int64_t> indices) {
      for (const std::int64_t index : indices) {
        if (bad.contains(index)) fail(ErrorKind::io, "page {} is gone", index);
      }
    };
    return source;
  }
  Spec spec(ErrorMode mode, std::set<std::int64_t> bad = {7, 8}, std::int64_t size = 20) const {
    Spec spec = counting_spec(device(), source(size, std::move(bad)));
    spec.on_error = {.mode = mode, .max_share = 1};
    return spec;
  }
};

/// Without the substitutes behind them.
inline Ids real_ids(const Batch& batch) {
  return {batch.sample_ids().begin(), batch.sample_ids().begin() + batch.real_rows()};
}

/// Takes batches to the end of `epochs` epochs.
inline void run_epochs(Pipeline& pipeline, std::int64_t epochs) {
  for (std::int64_t epoch = pipeline.position().epoch; epoch < epochs; ++epoch) {
    for (const Batch& batch : pipeline.epoch(epoch))
      EXPECT_TRUE(is_intact(batch));
  }
}

}  // namespace forebay::test
