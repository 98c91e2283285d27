#include <forebay/ops/rfft/rfft.h>

namespace forebay {

std::unique_ptr<Body> rfft_cpu(const Op& op, const Problem& problem, const Context&) {
  return dft::prepare_cpu(dft::resolve(dft::Kind::rfft, op.settings<Rfft>(), problem.inputs[0]),
                          problem);
}

}  // namespace forebay
