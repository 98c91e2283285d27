#include <forebay/array/require.h>
#include <forebay/ops/expr/execute_devices.h>

namespace forebay::expr {

std::unique_ptr<Body> prepare_cuda(const Program&, const Context&) {
  fail(ErrorKind::unsupported, "this Forebay was built without CUDA; use device cpu.");
}

}  // namespace forebay::expr
