#include "kit/op_bench.h"

namespace forebay::bench {
namespace {

[[maybe_unused]] const bool benches[] = {
    add("mel/f32_201_to_80",
        [] {
          return on({{255744, 201}, Dtype::f32, 0, 1}).mel({.sample_rate = 16000, .n_mels = 80});
        }),
    add("mel/f32_513_to_128",
        [] {
          return on({{65536, 513}, Dtype::f32, 0, 1}).mel({.sample_rate = 16000});
        }),
    add("mel/f16_513_to_128",
        [] {
          return on({{65536, 513}, Dtype::f16, 0, 1}).mel({.sample_rate = 16000});
        }),
};

}  // namespace
}  // namespace forebay::bench
