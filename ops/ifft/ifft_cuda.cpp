#include <forebay/ops/ifft/ifft.h>

namespace forebay {

std::unique_ptr<Body> ifft_cuda(const Op& op, const Problem& problem, const Context& context) {
  return dft::prepare_cuda(dft::resolve(dft::Kind::ifft, op.settings<Ifft>(), problem.inputs[0]),
                           problem, context);
}

}  // namespace forebay
