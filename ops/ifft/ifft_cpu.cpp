#include <forebay/ops/ifft/ifft.h>

namespace forebay {

std::unique_ptr<Body> ifft_cpu(const Op& op, const Problem& problem, const Context&) {
  return dft::prepare_cpu(dft::resolve(dft::Kind::ifft, op.settings<Ifft>(), problem.inputs[0]),
                          problem);
}

}  // namespace forebay
