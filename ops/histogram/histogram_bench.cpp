#include "kit/op_bench.h"

namespace forebay::bench {
namespace {

[[maybe_unused]] const bool benches[] = {
    add("histogram/256_of_67M",
        [] {
          return on({{65536, 1024}}).histogram({.bins = 256, .range = {{-5, 7}}});
        }),
    add("histogram/256_of_67M_equal",
        [] {
          return on({{65536, 1024}, Dtype::f32, 1, 1}).histogram({.bins = 256, .range = {{-5, 7}}});
        }),
    add("histogram/1000_of_67M",
        [] {
          return on({{65536, 1024}}).histogram({.bins = 1000, .range = {{-5, 7}}});
        }),
    add("histogram/256_of_67M_inferred",
        [] {
          return on({{65536, 1024}}).histogram({.bins = 256});
        }),
    add("histogram/f16",
        [] {
          return on({{65536, 1024}, Dtype::f16}).histogram({.bins = 256, .range = {{-5, 7}}});
        }),
    add("histogram/u8",
        [] {
          return on({{65536, 1024}, Dtype::u8, 0, 256})
              .histogram({.bins = 64, .range = {{0, 256}}});
        }),
    add("histogram/i32",
        [] {
          return on({{65536, 1024}, Dtype::i32, -500, 700})
              .histogram({.bins = 256, .range = {{-500, 700}}});
        }),
    add("histogram/64_per_row_of_16384",
        [] {
          return on({{4096, 16384}})
              .histogram({.bins = 64, .range = {{-5, 7}}, .per_sample = true});
        }),
    add("histogram/64_per_row_of_513",
        [] {
          return on({{8192, 513}}).histogram({.bins = 64, .range = {{-5, 7}}, .per_sample = true});
        }),
    add("histogram/256_per_channel",
        [] {
          return on({{256, 224, 224, 3}, Dtype::u8, 0, 256})
              .histogram({.bins = 256, .range = {{0, 256}}, .layout = Layout::nhwc});
        }),
};

}  // namespace
}  // namespace forebay::bench
