#include <forebay/ops/crop/crop.h>

#include <algorithm>

#include <forebay/array/require.h>
#include <forebay/ops/checks.h>

namespace forebay {

void Crop::fields(FieldVisitor& visitor) {
  visitor.on({.name = "axes",
              .doc = "The axes that are cropped; axis 0 is the batch.",
              .alias = "axis",
              .min = -kMaxRank,
              .max = kMaxRank - 1,
              .required = true},
             axes);
  visitor.on({.name = "start",
              .doc = "The first position of each axis, from the end when negative; the first "
                     "when left out."},
             start);
  visitor.on({.name = "stop",
              .doc = "The position behind the last, from the end when negative; the end when "
                     "left out."},
             stop);
  visitor.on({.name = "step", .doc = "From one position to the next; -1 goes backwards."}, step);
}

namespace {

/// `list` for the axis number `i` of `count`; `open` when it is empty.
std::int64_t entry(std::string_view name, const std::vector<std::int64_t>& list, std::size_t i,
                   std::size_t count, std::int64_t open) {
  return list.empty() ? open : entry_of("crop", name, list, i, count);
}

expr::Expr cropped(const Crop& settings, const expr::Expr& x) {
  const std::vector<int> axes = axes_of("crop", settings.axes, x.shape());
  expr::Expr result = x;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::int64_t extent = x.shape()[axes[i]];
    // Beyond the extent steps mean the same, and cannot overflow.
    const std::int64_t step =
        std::clamp(entry("step", settings.step, i, axes.size(), 1), -extent - 1, extent + 1);
    FOREBAY_REQUIRE(step != 0, invalid, "crop: `step` is 0; it must not be.");
    const std::int64_t start =
        entry("start", settings.start, i, axes.size(), step > 0 ? 0 : INT64_MAX);
    const std::int64_t stop =
        entry("stop", settings.stop, i, axes.size(), step > 0 ? INT64_MAX : INT64_MIN);
    result = expr::slice(result, axes[i], start, stop, step);
  }
  return result;
}

std::vector<ArraySpec> infer(const Crop& settings, std::span<const ArraySpec> inputs) {
  const auto& [dtype, shape] = inputs[0];
  return {{dtype, cropped(settings, expr::Expr::leaf(0, dtype, shape)).shape()}};
}

std::vector<expr::Expr> lower(const Crop& settings, std::span<const expr::Expr> inputs,
                              Materialise&) {
  return {cropped(settings, inputs[0])};
}

}  // namespace

OpDef crop_def() {
  return define_op<Crop, infer, lower>({
      .name = "crop",
      .summary = "Keeps a part of some axes, as NumPy's slices do.",
      .alias = "slice",
      .example = "{op: crop, axes: [-1], start: 1, stop: -1}",
  });
}

Array crop(const Array& x, const Crop& settings, const Context& context) {
  return run_single("crop", settings, {x}, context);
}

}  // namespace forebay
