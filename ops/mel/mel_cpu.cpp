#include <forebay/ops/mel/mel.h>

namespace forebay {

std::unique_ptr<Body> mel_cpu(const Op& op, const Problem& problem, const Context& context) {
  const Op product = mel_matmul(op.settings<Mel>(), problem.inputs[0]);
  return product.entry().cpu(product, problem, context);
}

}  // namespace forebay
