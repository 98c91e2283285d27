#include "kit/op_bench.h"

namespace forebay::bench {
namespace {

[[maybe_unused]] const bool benches[] = {
    add("dropout_mask/bool",
        [] {
          return on({{65536, 1024}}).dropout_mask();
        }),
    add("dropout_mask/f32",
        [] {
          return on({{65536, 1024}}).dropout_mask({.dtype = Dtype::f32, .scale = true});
        }),
};

}  // namespace
}  // namespace forebay::bench
