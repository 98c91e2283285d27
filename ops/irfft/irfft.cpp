#include <forebay/ops/irfft/irfft.h>

#include <forebay/ops/eager.h>

namespace forebay {
namespace {

std::vector<ArraySpec> infer(const Irfft& settings, std::span<const ArraySpec> inputs) {
  return {dft::resolve(dft::Kind::irfft, settings, inputs[0]).out};
}

}  // namespace

void Irfft::fields(FieldVisitor& visitor) {
  dft::visit(visitor,
             "Length of the result: n/2+1 frequencies are read, missing ones are zeros; 2*(m-1) "
             "for an axis of extent m when absent, which is even: give it for odd lengths.",
             n, axis, norm);
}

OpDef irfft_def() {
  OpDef def =
      define_op<Irfft, infer>({.name = "irfft",
                               .summary = "Real signal of a half spectrum, the inverse of rfft.",
                               .example = "{op: irfft, norm: ortho}"});
  def.fuses = dft::fuses<dft::Kind::irfft, Irfft>;
  def.mixes_samples = dft::along_batch<Irfft>;
  return def;
}

Array irfft(const Array& x, const Irfft& settings, const Context& context) {
  return run_single("irfft", settings, {x}, context);
}

}  // namespace forebay
