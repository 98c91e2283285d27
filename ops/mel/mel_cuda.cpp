#include <forebay/ops/mel/mel.h>

namespace forebay {

std::unique_ptr<Body> mel_cuda(const Op& op, const Problem& problem, const Context& context) {
  const Op product = mel_matmul(op.settings<Mel>(), problem.inputs[0]);
  return product.entry().cuda(product, problem, context);
}

}  // namespace forebay
