#include "kit/op_bench.h"

namespace forebay::bench {
namespace {

[[maybe_unused]] const bool benches[] = {
    add("argmax/f32_rows_1024",
        [] {
          return on({{65536, 1024}}).argmax();
        }),
    add("argmax/f32_rows_16384",
        [] {
          return on({{4096, 16384}}).argmax();
        }),
    add("argmax/f32_columns",
        [] {
          return on({{65536, 1024}}).argmax({.axis = 0});
        }),
    add("argmax/f16_rows_1024",
        [] {
          return on({{65536, 1024}, Dtype::f16}).argmax();
        }),
};

}  // namespace
}  // namespace forebay::bench
