#include "kit/op_bench.h"

namespace forebay::bench {
namespace {

[[maybe_unused]] const bool benches[] = {
    add("random_flip/u8_nhwc",
        [] {
          return on({{1024, 224, 224, 3}, Dtype::u8, 0, 256}).random_flip({.axes = {2}});
        }),
    add("random_flip/f32_nchw",
        [] { return on({{256, 3, 224, 224}}).random_flip({.axes = {3}}); }),
    add("random_flip/u8_nhwc_to_f16_nchw",
        [] {
          return on({{1024, 224, 224, 3}, Dtype::u8, 0, 256})
              .random_flip({.axes = {2}})
              .normalize({.mean = 127.5, .std = 73.9})
              .permute({.axes = {0, 3, 1, 2}})
              .cast({.dtype = Dtype::f16});
        }),
};

}  // namespace
}  // namespace forebay::bench
