#include <forebay/ops/fft/fft.h>

#include <forebay/ops/eager.h>

namespace forebay {
namespace {

std::vector<ArraySpec> infer(const Fft& settings, std::span<const ArraySpec> inputs) {
  return {dft::resolve(dft::Kind::fft, settings, inputs[0]).out};
}

}  // namespace

void Fft::fields(FieldVisitor& visitor) {
  dft::visit(visitor,
             "Length of the transform: longer axes are cropped, shorter ones padded with zeros at "
             "the end; the extent of the axis when absent.",
             n, axis, norm);
}

OpDef fft_def() {
  OpDef def = define_op<Fft, infer>({.name = "fft",
                                     .summary = "Discrete Fourier transform along one axis.",
                                     .example = "{op: fft, norm: ortho}"});
  def.fuses = dft::fuses<dft::Kind::fft, Fft>;
  def.mixes_samples = dft::along_batch<Fft>;
  return def;
}

Array fft(const Array& x, const Fft& settings, const Context& context) {
  return run_single("fft", settings, {x}, context);
}

}  // namespace forebay
