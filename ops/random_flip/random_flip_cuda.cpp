#include <forebay/ops/random_flip/random_flip.h>
#include <forebay/ops/sample_move.h>

namespace forebay {

std::unique_ptr<Body> random_flip_cuda(const Op& op, const Problem& problem,
                                       const Context& context) {
  const auto& settings = op.settings<RandomFlip>();
  const ArraySpec& x = problem.inputs[0];
  return move_samples_cuda(random_flip_detail::move_of(settings, x.shape), {}, problem, context);
}

}  // namespace forebay
