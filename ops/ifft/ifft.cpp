#include <forebay/ops/ifft/ifft.h>

#include <forebay/ops/eager.h>

namespace forebay {
namespace {

std::vector<ArraySpec> infer(const Ifft& settings, std::span<const ArraySpec> inputs) {
  return {dft::resolve(dft::Kind::ifft, settings, inputs[0]).out};
}

}  // namespace

void Ifft::fields(FieldVisitor& visitor) {
  dft::visit(visitor,
             "Length of the transform: longer axes are cropped, shorter ones padded with zeros at "
             "the end; the extent of the axis when absent.",
             n, axis, norm);
}

OpDef ifft_def() {
  OpDef def =
      define_op<Ifft, infer>({.name = "ifft",
                              .summary = "Inverse discrete Fourier transform along one axis.",
                              .example = "{op: ifft, norm: ortho}"});
  def.fuses = dft::fuses<dft::Kind::ifft, Ifft>;
  def.mixes_samples = dft::along_batch<Ifft>;
  return def;
}

Array ifft(const Array& x, const Ifft& settings, const Context& context) {
  return run_single("ifft", settings, {x}, context);
}

}  // namespace forebay
