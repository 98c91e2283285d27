// matmul with pointwise work before it: the bits of that work done first.
#include <forebay/ops/matmul/matmul.h>

#include "kit/kit.h"

#include <forebay/ops/body_test.h>
#include <forebay/ops/eager.h>
#include <forebay/ops/matmul/product.h>
#include <forebay/ops/registry.h>

namespace forebay {
namespace {

using expr::Expr;

Array run(const Op& op, const Problem& problem, const std::vector<Array>& sources,
          const Context& context) {
  return results_of(*op.entry().body(context.device().kind)(op, problem, context), problem, sources,
                    context)[0];
}

Expr constant(double value) { return Expr::constant(Number(value), Dtype::f32); }

class MatmulFusedTest : public kit::DeviceTest {};

DEVICE_TEST(MatmulFusedTest, WorkBeforeItHasTheSameBits) {
  const Context context = kit::context(device());
  const Array u8 = kit::to_device(kit::random({3, 40, 24}, Dtype::u8, 1, 0, 255), context);
  const Array gain = kit::to_device(kit::random({24}, Dtype::f32, 2), context);
  const Array other = kit::to_device(kit::random({24, 16}, Dtype::f32, 3), context);
  // Sources: other, gain, u8; x = (u8 - 3) / 7 * gain, and the second operand is 2 * other.
  const Expr x = (cast(Expr::leaf(2, Dtype::u8, {3, 40, 24}), Dtype::f32) - constant(3)) /
                 constant(7) * broadcast_to(Expr::leaf(1, Dtype::f32, {24}), {3, 40, 24});
  const Expr doubled = Expr::leaf(0, Dtype::f32, {24, 16}) * constant(2);
  const std::vector<Array> sources{other, gain, u8};
  const Array x_made = eval(x, sources, context), doubled_made = eval(doubled, sources, context);
  for (const Compute compute : {Compute::f32, Compute::bf16, Compute::f16, Compute::f64}) {
    const Matmul settings{.compute = compute};
    const Op op = Op::with(find_op("matmul"), settings);
    for (const Expr& second : {Expr::leaf(0, Dtype::f32, {24, 16}), doubled}) {
      Problem problem{.inputs = {{Dtype::f32, {3, 40, 24}}, {Dtype::f32, {24, 16}}}, .outputs = {}};
      problem.outputs = op.infer(problem.inputs);
      problem.prologue = {x, second};
      const Array& plain = is_dense_leaf(second) ? other : doubled_made;
      EXPECT_TRUE(kit::same_bits(run(op, problem, sources, context),
                                 kit::to_host(matmul(x_made, plain, settings, context), context)))
          << names_of(compute)[static_cast<std::size_t>(compute)];
    }
    const Matmul with_constant{.other = other, .compute = compute};
    const Op one = Op::with(find_op("matmul"), with_constant);
    Problem problem{.inputs = {{Dtype::f32, {3, 40, 24}}}, .outputs = {}};
    problem.outputs = one.infer(problem.inputs);
    problem.prologue = {x};
    EXPECT_TRUE(kit::same_bits(run(one, problem, sources, context),
                               kit::to_host(matmul(x_made, with_constant, context), context)));
  }
}

/// Where the operand is multiplied as it is, the work before it is a pass of its own.
TEST(MatmulFused, OnlyWhereAnOperandIsConverted) {
  const auto fuses = [](const Matmul& settings, Dtype x, DeviceKind device, std::int64_t k = 8) {
    const Problem problem{.inputs = {{x, {4, k}}, {Dtype::f32, {k, 2}}}, .outputs = {}};
    const Fusion fusion = find_op("matmul").def.fuses(&settings, problem, device);
    EXPECT_FALSE(fusion.epilogue);
    return fusion.prologue;
  };
  for (const DeviceKind device : {DeviceKind::cpu, DeviceKind::cuda}) {
    EXPECT_FALSE(fuses({}, Dtype::f32, device));
    EXPECT_FALSE(fuses({.compute = Compute::tf32}, Dtype::f32, device));
    EXPECT_TRUE(fuses({.compute = Compute::bf16}, Dtype::f32, device));
    EXPECT_TRUE(fuses({.compute = Compute::f64}, Dtype::f32, device));
    EXPECT_TRUE(fuses({}, Dtype::u8, device));
    EXPECT_FALSE(fuses({.compute = Compute::bf16}, Dtype::f32, device, 0));
  }
  // .. but for the product of ours that reads anything: with a constant, of a size that is worth it.
  const Matmul constant{.other = kit::random({64, 64}, Dtype::f32, 1), .compute = Compute::tf32};
  for (const std::int64_t rows : {8, 8192}) {
    const Problem problem{.inputs = {{Dtype::f32, {rows, 64}}}, .outputs = {}};
    EXPECT_EQ(find_op("matmul").def.fuses(&constant, problem, DeviceKind::cuda).prologue,
              rows == 8192);
    EXPECT_FALSE(find_op("matmul").def.fuses(&constant, problem, DeviceKind::cpu).prologue);
  }
}

}  // namespace
}  // namespace forebay
