#include "kit/op_bench.h"

namespace forebay::bench {
namespace {

const Normalize kRows{.axes = {{1}}};

[[maybe_unused]] const bool benches[] = {
    add("normalize/rows_65536x1024",
        [] {
          return on({{65536, 1024}}).normalize(kRows);
        }),
    add("normalize/rows_65536x1023",
        [] {
          return on({{65536, 1023}}).normalize(kRows);
        }),
    add("normalize/rows_1048576x32",
        [] {
          return on({{1 << 20, 32}}).normalize(kRows);
        }),
    add("normalize/rows_4096x16384",
        [] {
          return on({{4096, 16384}}).normalize(kRows);
        }),
    add("normalize/rows_1024x65536",
        [] {
          return on({{1024, 65536}}).normalize(kRows);
        }),
    add("normalize/whole_65536x1024",
        [] {
          return on({{65536, 1024}}).normalize();
        }),
    add("normalize/columns_65536x1024",
        [] {
          return on({{65536, 1024}}).normalize({.axes = {{0}}});
        }),
    add("normalize/channels_nchw_256x3x224x224",
        [] {
          return on({{256, 3, 224, 224}}).normalize({.layout = Layout::nchw});
        }),
    add("normalize/channels_nhwc_256x224x224x3",
        [] {
          return on({{256, 224, 224, 3}}).normalize({.layout = Layout::nhwc});
        }),
    // With what is fused: u8 read, f16 written.
    add("normalize/rows_u8_to_clipped_f16_65536x1024",
        [] {
          return on({{65536, 1024}, Dtype::u8, 0, 256})
              .normalize(kRows)
              .clip({.min = -3, .max = 3})
              .cast({.dtype = Dtype::f16});
        }),
    add("normalize/constants_65536x1024",
        [] {
          return on({{65536, 1024}}).normalize({.mean = 1, .std = 2});
        }),
};

}  // namespace
}  // namespace forebay::bench
