#include <forebay/ops/irfft/irfft.h>

namespace forebay {

std::unique_ptr<Body> irfft_cuda(const Op& op, const Problem& problem, const Context& context) {
  return dft::prepare_cuda(dft::resolve(dft::Kind::irfft, op.settings<Irfft>(), problem.inputs[0]),
                           problem, context);
}

}  // namespace forebay
