#include "kit/op_bench.h"

namespace forebay::bench {
namespace {

/// x [rows, inner] by a constant [inner, columns].
bool product(const std::string& name, std::int64_t rows, std::int64_t inner, std::int64_t columns,
             const Matmul& settings) {
  return add("matmul/" + name, [=] {
    Matmul with_other = settings;
    with_other.other = make({{inner, columns}, Dtype::f32, -1, 1});
    return on({{rows, inner}}).matmul(with_other);
  });
}

[[maybe_unused]] const bool benches[] = {
    product("f32_8192x1024x1024", 8192, 1024, 1024, {}),
    product("tf32_8192x1024x1024", 8192, 1024, 1024, {.compute = Compute::tf32}),
    product("bf16_8192x1024x1024", 8192, 1024, 1024, {.compute = Compute::bf16}),
    product("f64_2048x512x512", 2048, 512, 512, {.compute = Compute::f64}),
    product("f32_65536x201x80", 65536, 201, 80, {}),
    add("matmul/transposed_8192x1024x1024",
        [] {
          const Array other = make({{1024, 1024}, Dtype::f32, -1, 1});
          return on({{8192, 1024}}).matmul({.other = other, .transpose_other = true});
        }),
};

}  // namespace
}  // namespace forebay::bench
