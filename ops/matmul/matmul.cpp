#include <forebay/ops/matmul/matmul.h>

#include <array>

#include <forebay/ops/eager.h>
#include <forebay/ops/matmul/product.h>

namespace forebay {
namespace {

std::vector<ArraySpec> infer(const Matmul& settings, std::span<const ArraySpec> inputs) {
  return {resolve(settings, inputs).out};
}

/// Each row of the result belongs to one sample when axis 0 of x is kept and other does not bring
/// it in.
bool mixes_samples(const void* settings, std::span<const ArraySpec> inputs) {
  const ArraySpec& x = inputs[0];
  const bool constant = inputs.size() == 1;
  const int other_rank =
      constant ? static_cast<const Matmul*>(settings)->other.array.rank() : inputs[1].shape.rank;
  if (x.shape.rank < 2 || other_rank > x.shape.rank) return true;
  return !constant && (other_rank < x.shape.rank || other_rank < 3);
}

}  // namespace

std::span<const std::string_view> names_of(Compute) {
  static constexpr std::array<std::string_view, 5> kNames = {"f32", "tf32", "f16", "bf16", "f64"};
  return kNames;
}

void Matmul::fields(FieldVisitor& visitor) {
  visitor.on(
      {.name = "other",
       .doc = "The right operand, as a .npy file; leave it out to name a second input instead."},
      other);
  visitor.on(
      {.name = "transpose_other",
       .doc = "Multiply with the transpose of the right operand: its last axis is summed over.",
       .alias = "transpose_b"},
      transpose_other);
  visitor.on({.name = "compute",
              .doc = "What f32 operands are rounded to before they are multiplied: f32 does not "
                     "round them. Sums are in "
                     "f32, with f64 in f64.",
              .alias = "compute_dtype"},
             compute);
  visitor.on(
      {.name = "dtype", .doc = "Dtype of the result; the operands' common dtype when absent."},
      dtype);
}

OpDef matmul_def() {
  OpDef def = define_op<Matmul, infer>(
      {.name = "matmul",
       .summary = "Matrix product with a constant matrix or a second field.",
       .example = "{op: matmul, inputs: [x, weights], compute: f32}",
       .inputs = {"x", "other"},
       .optional_inputs = 1});
  def.fuses = product_fuses;
  def.mixes_samples = mixes_samples;
  return def;
}

Array matmul(const Array& x, const Array& other, const Matmul& settings, const Context& context) {
  return run_single("matmul", settings, {x, other}, context);
}

Array matmul(const Array& x, const Matmul& settings, const Context& context) {
  return run_single("matmul", settings, {x}, context);
}

}  // namespace forebay
