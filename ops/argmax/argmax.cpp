#include <forebay/ops/argmax/argmax.h>

#include <forebay/array/require.h>
#include <forebay/ops/checks.h>

namespace forebay {

void Argmax::fields(FieldVisitor& visitor) {
  visitor.on({.name = "axis",
              .doc = "Axis of the batch array to search; negative ones count from the last.",
              .alias = "dim"},
             axis);
  visitor.on({.name = "keepdims",
              .doc = "Keep the axis, with extent 1, instead of dropping it.",
              .alias = "keepdim"},
             keepdims);
}

namespace {

int searched_axis(const Argmax& settings, const Dims& shape) {
  return checked_axis("argmax", "axis", settings.axis, shape);
}

std::vector<ArraySpec> infer(const Argmax& settings, std::span<const ArraySpec> inputs) {
  check_dtype("argmax", "x", inputs[0].dtype, kReals);
  const Dims& shape = inputs[0].shape;
  const int axis = searched_axis(settings, shape);
  FOREBAY_REQUIRE(shape[axis] > 0, invalid,
                  "argmax: axis {} of `x` with shape {} is empty; it must have at least one "
                  "element. Search another `axis`.",
                  settings.axis, to_string(shape));
  Dims out = kept_shape(shape, AxisSet{1} << axis);
  if (settings.keepdims) {
    out = shape;
    out[axis] = 1;
  }
  return {{Dtype::i64, out}};
}

bool mixes_samples(const void* raw, std::span<const ArraySpec> inputs) {
  return searched_axis(*static_cast<const Argmax*>(raw), inputs[0].shape) == 0;
}

}  // namespace

OpDef argmax_def() {
  OpDef def = define_op<Argmax, infer>({
      .name = "argmax",
      .summary = "The position of the greatest element along an axis.",
      .example = "{op: argmax, axis: -1}",
  });
  def.mixes_samples = mixes_samples;
  return def;
}

Array argmax(const Array& x, const Argmax& settings, const Context& context) {
  return run_single("argmax", settings, {x}, context);
}

namespace argmax_detail {

Slices searched_slices(const Argmax& settings, const Dims& shape) {
  return slices_of(shape, AxisSet{1} << searched_axis(settings, shape));
}

}  // namespace argmax_detail
}  // namespace forebay
