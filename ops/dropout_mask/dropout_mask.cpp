#include <forebay/ops/dropout_mask/dropout_mask.h>

#include <forebay/array/require.h>
#include <forebay/ops/checks.h>

namespace forebay {

void DropoutMask::fields(FieldVisitor& visitor) {
  visitor.on({.name = "p",
              .doc = "The probability that an element is dropped.",
              .alias = "rate",
              .min = 0,
              .max = 1},
             p);
  visitor.on({.name = "dtype", .doc = "bool, or a float type with 0 for what is dropped."}, dtype);
  visitor.on({.name = "scale", .doc = "Makes what is kept 1 / (1 - p) instead of 1."}, scale);
  visit_stream(visitor, stream);
}

namespace {

constexpr int kDraws = 2;

std::vector<ArraySpec> infer(const DropoutMask& settings, std::span<const ArraySpec> inputs) {
  const Dtype dtype = settings.dtype;
  FOREBAY_REQUIRE(dtype == Dtype::boolean || is_float(dtype), invalid,
                  "dropout_mask: `dtype` is {}; it must be bool, f16, bf16, f32 or f64.",
                  name_of(dtype));
  FOREBAY_REQUIRE(!settings.scale || is_float(dtype), invalid,
                  "dropout_mask: `scale` needs a float type for 1 / (1 - p); set `dtype`.");
  FOREBAY_REQUIRE(!settings.scale || settings.p < 1, invalid,
                  "dropout_mask: `scale` with `p` 1 divides by 0; nothing would be kept.");
  check_sample("dropout_mask", inputs[0].shape, 1);
  return {{dtype, inputs[0].shape}};
}

std::vector<expr::Expr> lower(const DropoutMask& settings, std::span<const expr::Expr> inputs,
                              Materialise&) {
  const expr::Expr word = Words(inputs, kDraws, settings.stream).of_elements(inputs[0].shape());
  // 2^32 is one more than the greatest word: with p = 1 nothing is kept.
  const std::uint64_t threshold = threshold_of(settings.p);
  const expr::Expr kept =
      threshold >> 32 != 0
          ? broadcast_to(expr::Expr::constant(0, Dtype::boolean), word.shape())
          : binary(expr::Opcode::le, expr::Expr::constant(threshold, Dtype::u32), word);
  if (settings.dtype == Dtype::boolean) return {kept};
  const Number value = settings.scale ? Number(1 / (1 - settings.p)) : Number(1);
  return {select(kept, expr::Expr::constant(value, settings.dtype),
                 expr::Expr::constant(0, settings.dtype))};
}

}  // namespace

OpDef dropout_mask_def() {
  return define_op<DropoutMask, infer, lower>({
      .name = "dropout_mask",
      .summary = "Says at random which elements to keep.",
      .example = "{op: dropout_mask, p: 0.25}",
      .draws = kDraws,
  });
}

Array dropout_mask(const Array& x, const DropoutMask& settings, const Draw& draw,
                   const Context& context) {
  return run_random("dropout_mask", settings, x, draw, context);
}

}  // namespace forebay
