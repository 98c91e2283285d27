#include <forebay/ops/frame/frame.h>

#include <forebay/array/require.h>
#include <forebay/ops/checks.h>

namespace forebay {

void Frame::fields(FieldVisitor& visitor) {
  visitor.on({.name = "length",
              .doc = "Elements of a frame.",
              .alias = "frame_length",
              .min = 1,
              .required = true},
             length);
  visitor.on({.name = "hop",
              .doc = "Elements from the start of one frame to the start of the next.",
              .alias = "hop_length",
              .min = 1,
              .required = true},
             hop);
  visitor.on({.name = "axis",
              .doc = "The axis that is cut; it becomes two axes, (frames, length).",
              .min = -kMaxRank,
              .max = kMaxRank - 1},
             axis);
}

namespace {

std::vector<ArraySpec> infer(const Frame& settings, std::span<const ArraySpec> inputs) {
  const auto& [dtype, shape] = inputs[0];
  const int axis = axis_of("frame", settings.axis, shape);
  FOREBAY_REQUIRE(shape.rank < kMaxRank, invalid,
                  "frame: `x` of shape {} has {} axes already; frames add one, and arrays have at "
                  "most {}.",
                  to_string(shape), shape.rank, kMaxRank);
  FOREBAY_REQUIRE(shape[axis] >= settings.length, invalid,
                  "frame: `length` is {}, but `x` of shape {} has {} elements along axis {}; it "
                  "must be at most that.",
                  settings.length, to_string(shape), shape[axis], axis);
  return {{dtype,
           frame(expr::Expr::leaf(0, dtype, shape), axis, settings.length, settings.hop).shape()}};
}

std::vector<expr::Expr> lower(const Frame& settings, std::span<const expr::Expr> inputs,
                              Materialise&) {
  return {frame(inputs[0], static_cast<int>(settings.axis), settings.length, settings.hop)};
}

}  // namespace

OpDef frame_def() {
  return define_op<Frame, infer, lower>({
      .name = "frame",
      .summary = "Cuts an axis into frames, which may overlap.",
      .example = "{op: frame, length: 3, hop: 2}",
  });
}

Array frame(const Array& x, const Frame& settings, const Context& context) {
  return run_single("frame", settings, {x}, context);
}

}  // namespace forebay
