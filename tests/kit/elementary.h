#pragma once

#include <optional>
#include <string>

#include "kit/kit.h"

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

/// Over the edge values of every dtype, to every float type.
void expect_within_two_ulp(const ElementaryFunction& function, Device device);
void expect_within_two_ulp_everywhere_in_f32(const ElementaryFunction& function, Device device);
void expect_every_layout_and_size(const ElementaryFunction& function, Device device);
void expect_error_texts(const ElementaryFunction& function);

}  // namespace forebay::kit
