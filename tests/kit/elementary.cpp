#include "kit/elementary.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kit/oracle.h"

namespace forebay::kit {
namespace {

/// |got - want| in units in the last place of `dtype` at want; 0 for equal infinities and two NaN.
long double error_in_ulp(Dtype dtype, long double got, long double want) {
  const long double rounded = round_to(dtype, want);
  if (std::isnan(want) || std::isnan(got))
    return std::isnan(want) && std::isnan(got) ? 0 : INFINITY;
  if (std::isinf(rounded) || std::isinf(got)) return rounded == got ? 0 : INFINITY;
  return std::abs(got - want) / ulp(dtype, want);
}

}  // namespace

void expect_within_two_ulp(const ElementaryFunction& function, Device device) {
  const Context context = kit::context(device);
  for (Dtype dtype : kAllDtypes) {
    if (is_complex(dtype)) continue;
    const Array values = edge_values(dtype);
    const std::vector<long double> in = exact(values);
    for (Dtype result : {Dtype::f16, Dtype::bf16, Dtype::f32, Dtype::f64}) {
      const bool in_f64 = dtype == Dtype::f64 || result == Dtype::f64;
      const Array got = function.on_host(values, result, context);
      ASSERT_EQ(got.dtype(), result);
      const std::vector<long double> out = exact(got);
      for (std::size_t i = 0; i < in.size(); ++i) {
        // What is computed is the function of the converted input.
        const long double converted = round_to(in_f64 ? Dtype::f64 : Dtype::f32, in[i]);
        EXPECT_LE(error_in_ulp(result, out[i], function.exact(converted)), 2)
            << name_of(dtype) << " " << static_cast<double>(in[i]) << " to " << name_of(result)
            << " gives " << static_cast<double>(out[i]);
      }
    }
  }
}

void expect_within_two_ulp_everywhere_in_f32(const ElementaryFunction& function,
                                                    Device device) {
  const Context context = kit::context(device);
  // Every exponent, both signs, thousands of significands.
  const Array x = generate({1 << 18}, Dtype::f32, [](std::int64_t i) {
    const double significand = 1 + static_cast<double>(i * 2654435761 % 1048576) / 1048576;
    return std::ldexp(i % 2 == 0 ? significand : -significand, static_cast<int>(i / 2 % 300) - 170);
  });
  const Array got = function.on_host(x, std::nullopt, context);
  long double worst = 0;
  for (std::int64_t i = 0; i < x.count(); ++i) {
    worst =
        std::max(worst, error_in_ulp(Dtype::f32, got.as<float>()[i], function.exact(x.as<float>()[i])));
  }
  EXPECT_LE(worst, 2);
}

void expect_every_layout_and_size(const ElementaryFunction& function, Device device) {
  const Context context = kit::context(device);
  EXPECT_EQ(function.on_host(random({3}, Dtype::u8, 1), std::nullopt, context).dtype(), Dtype::f32);
  EXPECT_EQ(function.on_host(random({3}, Dtype::bf16, 1), std::nullopt, context).dtype(),
            Dtype::bf16);
  EXPECT_EQ(function.on_host(random({3}, Dtype::f64, 1), std::nullopt, context).dtype(),
            Dtype::f64);
  for (const Dims& shape :
       {Dims{}, Dims{0}, Dims{1}, Dims{3}, Dims{1023}, Dims{1025}, Dims{5, 7, 31}}) {
    const Array x = random(shape, Dtype::f32, 7, 0.5, 4);
    std::vector<double> want = values(x);
    for (double& value : want)
      value = static_cast<double>(function.exact(value));
    for (Layout layout : layouts()) {
      EXPECT_TRUE(near(function.on_host(with_layout(x, layout), std::nullopt, context), want,
                       4 * epsilon(Dtype::f32)));
    }
  }
}

void expect_error_texts(const ElementaryFunction& function) {
  const Context cpu = context(Device::cpu());
  EXPECT_ERROR(
      function.run(random({2}, Dtype::c64, 1), std::nullopt, cpu), unsupported,
      function.name +
          ": `x` has dtype c64; supported: bool, integers, f16, bf16, f32, f64. Add an `abs` "
          "stage before it.");
  EXPECT_ERROR(function.run(random({2}, Dtype::u8, 1), Dtype::u8, cpu), invalid,
               function.name + ": `dtype` is u8; it must be f16, bf16, f32 or f64.");
}

}  // namespace forebay::kit
