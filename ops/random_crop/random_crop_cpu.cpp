#include <forebay/ops/random_crop/random_crop.h>
#include <forebay/ops/sample_move.h>

namespace forebay {

std::unique_ptr<Body> random_crop_cpu(const Op& op, const Problem& problem, const Context&) {
  const auto& settings = op.settings<RandomCrop>();
  const ArraySpec& x = problem.inputs[0];
  return move_samples_cpu(random_crop_detail::move_of(settings, x.shape),
                          Fill(settings.value, x.dtype), problem);
}

}  // namespace forebay
