#include <forebay/ops/rfft/rfft.h>

#include <forebay/ops/eager.h>

namespace forebay {
namespace {

std::vector<ArraySpec> infer(const Rfft& settings, std::span<const ArraySpec> inputs) {
  return {dft::resolve(dft::Kind::rfft, settings, inputs[0]).out};
}

}  // namespace

void Rfft::fields(FieldVisitor& visitor) {
  dft::visit(visitor,
             "Length of the transform: longer axes are cropped, shorter ones padded with zeros at "
             "the end; the extent of the axis when absent.",
             n, axis, norm);
}

OpDef rfft_def() {
  OpDef def = define_op<Rfft, infer>({.name = "rfft",
                                      .summary = "Discrete Fourier transform of real numbers: the "
                                                 "n/2+1 frequencies that determine the rest.",
                                      .example = "{op: rfft, norm: ortho}"});
  def.fuses = dft::fuses<dft::Kind::rfft, Rfft>;
  def.mixes_samples = dft::along_batch<Rfft>;
  return def;
}

Array rfft(const Array& x, const Rfft& settings, const Context& context) {
  return run_single("rfft", settings, {x}, context);
}

}  // namespace forebay
