#include "kit/op_bench.h"

// What tiles, layouts and conversions cost; the sums of several ops are rows of bench/.
namespace forebay::bench {
namespace {

const Data kFloats{{16384, 1024}, Dtype::f32, 0.5, 7};
const Data kImages{{64, 224, 224, 3}, Dtype::u8, 0, 256};
const Normalize kChannels{.mean = Reals{123.675, 116.28, 103.53},
                          .std = Reals{58.395, 57.12, 57.375},
                          .layout = Layout::nhwc};

[[maybe_unused]] const bool benches[] = {
    add("expr/scale_f32", [] { return on(kFloats).scale({.factor = 2, .offset = 1}); }),
    add("expr/divide_f32", [] { return on(kFloats).normalize({.mean = 1, .std = 3}); }),
    add("expr/exp_f32", [] { return on(kFloats).exp(); }),
    add("expr/log1p_f32", [] { return on(kFloats).log1p(); }),
    add("expr/f32_to_f16", [] { return on(kFloats).cast({.dtype = Dtype::f16}); }),
    add("expr/f32_to_u8", [] { return on(kFloats).cast({.dtype = Dtype::u8}); }),
    add("expr/nhwc_u8_to_f32", [] { return on(kImages).normalize(kChannels); }),
    add("expr/nhwc_u8_to_nchw_f32",
        [] {
          return on(kImages).normalize(kChannels).permute({.axes = {0, 3, 1, 2}});
        }),
    add("expr/nhwc_u8_to_nchw_f16",
        [] {
          return on(kImages)
              .normalize(kChannels)
              .permute({.axes = {0, 3, 1, 2}})
              .cast({.dtype = Dtype::f16});
        }),
    add("expr/transpose_f32",
        [] {
          return on({{16, 1024, 1024}}).permute({.axes = {0, 2, 1}}).scale({.factor = 2});
        }),
};

}  // namespace
}  // namespace forebay::bench
