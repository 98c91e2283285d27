#pragma once

// What the tests of expressions share.

#include "kit/kit.h"

#include <vector>

#include <forebay/ops/eager.h>
#include <forebay/ops/expr/expression.h>

namespace forebay::expr {

/// Source number `source`, of the dtype, shape and strides of `x`.
inline Expr leaf_like(int source, const Array& x) {
  return Expr::leaf(source, x.dtype(), x.shape(), x.strides());
}

/// `expression` of host arrays, evaluated on the device of `context`.
inline Array run(const Expr& expression, const std::vector<Array>& hosts, const Context& context) {
  std::vector<Array> sources;
  for (const Array& host : hosts)
    sources.push_back(kit::to_device(host, context));
  return kit::to_host(eval(expression, sources, context), context);
}

}  // namespace forebay::expr
