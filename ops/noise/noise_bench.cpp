#include "kit/op_bench.h"

namespace forebay::bench {
namespace {

[[maybe_unused]] const bool benches[] = {
    add("noise/gaussian_f32",
        [] {
          return on({{65536, 1024}}).noise();
        }),
    add("noise/uniform_f32",
        [] {
          return on({{65536, 1024}}).noise({.distribution = NoiseKind::uniform});
        }),
    add("noise/gaussian_f16",
        [] {
          return on({{65536, 1024}, Dtype::f16}).noise();
        }),
    add("noise/gaussian_f64",
        [] {
          return on({{32768, 1024}, Dtype::f64}).noise();
        }),
};

}  // namespace
}  // namespace forebay::bench
