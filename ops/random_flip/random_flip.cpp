#include <forebay/ops/random_flip/random_flip.h>

namespace forebay {

void RandomFlip::fields(FieldVisitor& visitor) {
  visitor.on({.name = "axes",
              .doc = "The axes that are reversed, each by itself; axis 0 is the batch.",
              .alias = "axis",
              .min = -kMaxRank,
              .max = kMaxRank - 1,
              .required = true},
             axes);
  visitor.on({.name = "p",
              .doc = "The probability that an axis is reversed.",
              .alias = "probability",
              .min = 0,
              .max = 1},
             p);
  visit_stream(visitor, stream);
}

namespace {

constexpr int kDraws = 3;

std::vector<ArraySpec> infer(const RandomFlip& settings, std::span<const ArraySpec> inputs) {
  check_sample("random_flip", inputs[0].shape, 1);
  sample_axes_of("random_flip", settings.axes, inputs[0].shape);
  return {inputs[0]};
}

}  // namespace

SampleMove random_flip_detail::move_of(const RandomFlip& settings, const Dims& shape) {
  std::vector<MovedAxis> moved;
  for (const int axis : sample_axes_of("random_flip", settings.axes, shape)) {
    moved.push_back({.axis = axis, .extent = shape[axis], .threshold = threshold_of(settings.p)});
  }
  return {shape, moved, sequence_of(kDraws, settings.stream)};
}

OpDef random_flip_def() {
  OpDef def = define_op<RandomFlip, infer>({
      .name = "random_flip",
      .summary = "Reverses axes of samples at random.",
      .example = "{op: random_flip, axes: [-1]}",
      .draws = kDraws,
  });
  def.fuses = [](const void*, const Problem&, DeviceKind) { return Fusion{true, true}; };
  return def;
}

Array random_flip(const Array& x, const RandomFlip& settings, const Draw& draw,
                  const Context& context) {
  return run_random("random_flip", settings, x, draw, context);
}

}  // namespace forebay
