#include "kit/op_bench.h"

namespace forebay::bench {
namespace {

[[maybe_unused]] const bool benches[] = {
    add("tally/f32_67M",
        [] {
          return on({{65536, 1024}}).tally();
        }),
    add("tally/f32_67M_equal",
        [] {
          return on({{65536, 1024}, Dtype::f32, 1, 1}).tally();
        }),
    add("tally/f32_67M_half_zeros",
        [] {
          return on({{65536, 1024}}).clip({.min = 0}).tally();
        }),
    add("tally/f32_per_column",
        [] {
          return on({{65536, 1024}}).tally({.bits = 2, .axes = {{0}}});
        }),
    add("tally/f16_67M",
        [] {
          return on({{65536, 1024}, Dtype::f16}).tally();
        }),
    add("tally/f64_33M",
        [] {
          return on({{32768, 1024}, Dtype::f64}).tally();
        }),
    add("tally/i32_67M",
        [] {
          return on({{65536, 1024}, Dtype::i32, -500, 700}).tally();
        }),
    add("tally/u8_67M",
        [] {
          return on({{65536, 1024}, Dtype::u8, 0, 256}).tally();
        }),
    add("tally/u8_nhwc",
        [] {
          return on({{256, 224, 224, 3}, Dtype::u8, 0, 256}).tally({.layout = Layout::nhwc});
        }),
    add("tally/u8_nhwc_normalized",
        [] {
          return on({{256, 224, 224, 3}, Dtype::u8, 0, 256})
              .normalize({.mean = 127.5, .std = 73.9})
              .tally({.layout = Layout::nhwc});
        }),
};

}  // namespace
}  // namespace forebay::bench
