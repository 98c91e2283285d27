#include <forebay/ops/random_crop/random_crop.h>

#include <algorithm>
#include <cmath>

#include <forebay/array/require.h>
#include <forebay/ops/checks.h>

namespace forebay {

void RandomCrop::fields(FieldVisitor& visitor) {
  visitor.on({.name = "axes",
              .doc = "The axes that are cropped; axis 0 is the batch.",
              .alias = "axis",
              .min = -kMaxRank,
              .max = kMaxRank - 1,
              .required = true},
             axes);
  visitor.on({.name = "size",
              .doc = "What is kept of each axis, or of all of them, in elements.",
              .min = 1,
              .required = true},
             size);
  visitor.on({.name = "padding",
              .doc = "How far the part may reach out of each axis at either end, in elements.",
              .min = 0},
             padding);
  visitor.on({.name = "value", .doc = "What lies outside.", .alias = "fill"}, value);
  visit_stream(visitor, stream);
}

namespace {

constexpr int kDraws = 4;

std::vector<MovedAxis> moved_axes(const RandomCrop& settings, const Dims& shape) {
  const std::vector<int> axes = sample_axes_of("random_crop", settings.axes, shape);
  std::vector<MovedAxis> moved;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::int64_t extent = shape[axes[i]];
    const std::int64_t size = entry_of("random_crop", "size", settings.size, i, axes.size());
    const std::int64_t padding =
        entry_of("random_crop", "padding", settings.padding, i, axes.size());
    FOREBAY_REQUIRE(padding <= INT32_MAX, invalid,
                    "random_crop: `padding` is {}; it must be at most {}.", padding, INT32_MAX);
    FOREBAY_REQUIRE(size <= extent + 2 * padding, invalid,
                    "random_crop: `size` is {}, but axis {} of `x`, shape {}, has {} elements{}; "
                    "set `padding` to {} or more, or a smaller size.",
                    size, axes[i], to_string(shape), extent,
                    padding > 0 ? fmt::format(" and {} of padding at either end", padding) : "",
                    (size - extent + 1) / 2);
    const std::int64_t places = extent + 2 * padding - size + 1;
    moved.push_back({.axis = axes[i], .extent = size, .places = places, .padding = padding});
  }
  return moved;
}

void check_value(const Number& value, Dtype dtype) {
  if (!is_integer(dtype)) return;
  const bool whole = value.is_integer() || std::floor(value.f64()) == value.f64();
  const int bits = static_cast<int>(8 * size_of(dtype));
  const double high = std::ldexp(1, is_unsigned(dtype) ? bits : bits - 1);
  const double low = is_unsigned(dtype) ? 0 : -high;
  FOREBAY_REQUIRE(whole && value.f64() >= low && value.f64() < high, invalid,
                  "random_crop: `value` is {}, which {} cannot hold.", to_string(value),
                  name_of(dtype));
}

std::vector<ArraySpec> infer(const RandomCrop& settings, std::span<const ArraySpec> inputs) {
  const auto& [dtype, shape] = inputs[0];
  check_sample("random_crop", shape, 1);
  check_value(settings.value, dtype);
  Dims result = shape;
  for (const MovedAxis& moved : moved_axes(settings, shape))
    result[moved.axis] = moved.extent;
  return {{dtype, result}};
}

}  // namespace

SampleMove random_crop_detail::move_of(const RandomCrop& settings, const Dims& shape) {
  return {shape, moved_axes(settings, shape), sequence_of(kDraws, settings.stream)};
}

OpDef random_crop_def() {
  OpDef def = define_op<RandomCrop, infer>({
      .name = "random_crop",
      .summary = "Keeps a part of each sample, at random places.",
      .example = "{op: random_crop, axes: [-1], size: 5, padding: 1}",
      .draws = kDraws,
  });
  def.fuses = [](const void*, const Problem&, DeviceKind) { return Fusion{true, true}; };
  return def;
}

Array random_crop(const Array& x, const RandomCrop& settings, const Draw& draw,
                  const Context& context) {
  return run_random("random_crop", settings, x, draw, context);
}

}  // namespace forebay
