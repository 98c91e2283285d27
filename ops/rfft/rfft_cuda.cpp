#include <forebay/ops/rfft/rfft.h>

namespace forebay {

std::unique_ptr<Body> rfft_cuda(const Op& op, const Problem& problem, const Context& context) {
  return dft::prepare_cuda(dft::resolve(dft::Kind::rfft, op.settings<Rfft>(), problem.inputs[0]),
                           problem, context);
}

}  // namespace forebay
