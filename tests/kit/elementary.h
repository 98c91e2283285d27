#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "kit/oracle.h"

// What exp, log and their kin are tested for alike: real functions of one element, within 2 ulp.
namespace forebay::kit {

struct ElementaryFunction {
  std::string name;
  Array (*run)(const Array& x, std::optional<Dtype> dtype, const Context& context);
  long double (*exact)(long double x);

  Array on_host(const Array& host, std::optional<Dtype> dtype, const Context& context) const {
    return to_host(run(to_device(host, context), dtype, context), context);
  }
};

/// |got - want| in units in the last place of Out at want; 0 for equal infinities and two NaN.
template <class Out>
long double error_in_ulp(Out got, long double want) {
  const long double rounded = exact(round_to<Out>(want)), value = exact(got);
  if (std::isnan(want) || std::isnan(value))
    return std::isnan(want) && std::isnan(value) ? 0 : INFINITY;
  if (std::isinf(rounded) || std::isinf(value)) return rounded == value ? 0 : INFINITY;
  return std::abs(value - want) / ulp(format_of<Out>(), want);
}

/// Over the edge values of every dtype, to every float type.
inline void expect_within_two_ulp(const ElementaryFunction& function, Device device) {
  const Context context = kit::context(device);
  for (Dtype dtype : kAllDtypes) {
    if (is_complex(dtype)) continue;
    for (Dtype result : {Dtype::f16, Dtype::bf16, Dtype::f32, Dtype::f64}) {
      dispatch(RealsAndBool{}, dtype, "test", "x", [&]<class T>(Type<T>) {
        dispatch(Floats{}, result, "test", "dtype", [&]<class Out>(Type<Out>) {
          const bool in_f64 = dtype == Dtype::f64 || result == Dtype::f64;
          const auto values = edge_values<T>();
          const Array got = function.on_host(array_of(values), result, context);
          ASSERT_EQ(got.dtype(), result);
          for (std::size_t i = 0; i < values.size(); ++i) {
            // What is computed is the function of the converted input.
            const long double x = exact(values[i]);
            const long double converted =
                in_f64 ? exact(round_to<double>(x)) : exact(round_to<float>(x));
            EXPECT_LE(error_in_ulp(got.as<Out>()[i], function.exact(converted)), 2)
                << name_of(dtype) << " " << static_cast<double>(x) << " to " << name_of(result)
                << " gives " << static_cast<double>(exact(got.as<Out>()[i]));
          }
        });
      });
    }
  }
}

inline void expect_within_two_ulp_everywhere_in_f32(const ElementaryFunction& function,
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
        std::max(worst, error_in_ulp(got.as<float>()[i], function.exact(exact(x.as<float>()[i]))));
  }
  EXPECT_LE(worst, 2);
}

inline void expect_every_layout_and_size(const ElementaryFunction& function, Device device) {
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

inline void expect_error_texts(const ElementaryFunction& function) {
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
