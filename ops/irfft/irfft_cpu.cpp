#include <forebay/ops/irfft/irfft.h>

namespace forebay {

std::unique_ptr<Body> irfft_cpu(const Op& op, const Problem& problem, const Context&) {
  return dft::prepare_cpu(dft::resolve(dft::Kind::irfft, op.settings<Irfft>(), problem.inputs[0]),
                          problem);
}

}  // namespace forebay
