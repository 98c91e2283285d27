// What expressions are before they run: shapes, dtypes, index maps, programs.
#include "kit/kit.h"

#include <array>

#include <forebay/ops/eager.h>
#include <forebay/ops/expr/loop_nest.h>

namespace forebay::expr {
namespace {

const Expr kX = Expr::leaf(0, Dtype::f32, {2, 3, 4});

Array evaluated(const Expr& expression, const Array& source) {
  const Context context = kit::context(Device::cpu());
  return kit::to_host(eval(expression, {source}, context), context);
}

TEST(Expression, BroadcastsAsNumPy) {
  EXPECT_EQ((kX + Expr::leaf(1, Dtype::f32, {4})).shape(), (Dims{2, 3, 4}));
  EXPECT_EQ((Expr::leaf(1, Dtype::f32, {3, 1}) + Expr::leaf(2, Dtype::f32, {1, 4})).shape(),
            (Dims{3, 4}));
  EXPECT_EQ((kX + Expr::constant(1, Dtype::f32)).shape(), kX.shape());
  EXPECT_EQ((Expr::constant(2, Dtype::f32) + Expr::constant(1, Dtype::f32)).shape(), Dims{});
  EXPECT_ERROR(kX + Expr::leaf(1, Dtype::f32, {3}), invalid,
               "shapes (2, 3, 4) and (3,) do not broadcast: axis -1 is 4 and 3; extents must be "
               "equal or 1.");
}

TEST(Expression, HoldsConstantsAsTheDtypeDoes) {
  EXPECT_EQ(Expr::constant(300, Dtype::u8).node()->value, Number(255));
  EXPECT_EQ(Expr::constant(-1.5, Dtype::i8).node()->value, Number(-1));
  EXPECT_EQ(Expr::constant(NAN, Dtype::i32).node()->value, Number(0));
  EXPECT_EQ(Expr::constant(0.1, Dtype::f32).node()->value, Number(static_cast<double>(0.1F)));
  EXPECT_EQ(Expr::constant(UINT64_MAX, Dtype::u64).node()->value, Number(UINT64_MAX));
  EXPECT_EQ(Expr::constant(1e6, Dtype::f16).node()->value, Number(INFINITY));
}

TEST(Expression, KnowsTheDtypeOfEachResult) {
  const Expr z = Expr::leaf(0, Dtype::c64, {3});
  EXPECT_EQ(unary(Opcode::abs, z).dtype(), Dtype::f32);
  EXPECT_EQ(unary(Opcode::conj, z).dtype(), Dtype::c64);
  EXPECT_EQ(binary(Opcode::lt, kX, kX).dtype(), Dtype::boolean);
  const Expr bytes = Expr::leaf(0, Dtype::u8, {3});
  EXPECT_EQ(unary(Opcode::floor, bytes).node(), bytes.node());  // nothing to do
  EXPECT_EQ(unary(Opcode::abs, bytes).node(), bytes.node());
  EXPECT_EQ(unary(Opcode::real, kX).node(), kX.node());
  EXPECT_EQ(cast(kX, Dtype::f32).node(), kX.node());
  EXPECT_EQ(unary(Opcode::is_nan, bytes).shape(), Dims{3});
}

TEST(ExpressionErrors, SayWhatIsAllowed) {
  const Expr bytes = Expr::leaf(1, Dtype::u8, {4});
  EXPECT_ERROR(kX + bytes, unsupported,
               "add: operands have dtypes f32 and u8; they must be equal. Cast one of them.");
  EXPECT_ERROR(unary(Opcode::exp, bytes), unsupported,
               "exp: operand has dtype u8; supported: f16, bf16, f32, f64.");
  EXPECT_ERROR(binary(Opcode::logical_and, bytes, bytes), unsupported,
               "logical_and: operand has dtype u8; supported: bool.");
  EXPECT_ERROR(select(bytes, kX, kX), unsupported,
               "select: the condition has dtype u8; it must be bool.");
  EXPECT_ERROR(compile(std::array{kX, bytes}), invalid,
               "compile: outputs have shapes (2, 3, 4) and (4,); one kernel has one shape.");
  EXPECT_ERROR(compile({}), invalid, "compile: no outputs; give at least one.");
}

TEST(IndexMaps, GiveTheElementsThatViewsGive) {
  const Array x = kit::random({4, 6, 5}, Dtype::f32, 3);
  const Expr leaf = Expr::leaf(0, Dtype::f32, {4, 6, 5});
  const Expr twice = leaf + leaf;
  const Array doubled = evaluated(twice, x);
  EXPECT_TRUE(kit::same_bits(evaluated(permute(twice, {2, 0, -2}), x), doubled.permute({2, 0, 1})));
  EXPECT_TRUE(kit::same_bits(evaluated(reshape(twice, {8, -1}), x), doubled.reshape({8, 15})));
  EXPECT_TRUE(kit::same_bits(evaluated(broadcast_to(twice, {3, 4, 6, 5}), x),
                             doubled.broadcast_to({3, 4, 6, 5})));
  struct Cut {
    int axis;
    std::int64_t start, stop, step;
  };
  for (const Cut& cut : {Cut{1, 1, 5, 2}, Cut{0, -3, 100, 1}, Cut{2, 4, -100, -2},
                         Cut{2, -1, 0, -1}, Cut{-1, 3, 1, 1}, Cut{1, 5, 1, -3}}) {
    EXPECT_TRUE(kit::same_bits(evaluated(slice(twice, cut.axis, cut.start, cut.stop, cut.step), x),
                               doubled.slice(cut.axis, cut.start, cut.stop, cut.step)))
        << cut.axis << ": " << cut.start << " " << cut.stop << " " << cut.step;
  }
  const Array cut = doubled.permute({1, 0, 2}).slice(0, 1, 4);
  const Array dense = kit::to_host(cut, kit::context(Device::cpu()));
  EXPECT_TRUE(
      kit::same_bits(evaluated(reshape(slice(permute(twice, {1, 0, 2}), 0, 1, 4), {3, 4, 1, 5}), x),
                     dense.reshape({3, 4, 1, 5})));
}

TEST(IndexMaps, KnowWhatNeedsACopy) {
  EXPECT_TRUE(can_reshape(kX, {6, 4}));
  EXPECT_FALSE(can_reshape(permute(kX, {0, 2, 1}), {24}));
  EXPECT_TRUE(can_reshape(permute(kX, {0, 2, 1}), {2, 2, 2, 3}));
  EXPECT_FALSE(can_reshape(kX + Expr::leaf(1, Dtype::f32, {4}), {24}));  // the row repeats
  EXPECT_TRUE(can_reshape(kX + Expr::constant(1, Dtype::f32), {24}));
}

TEST(Substitute, PutsOneExpressionIntoAnother) {
  const Array x = kit::random({4, 6}, Dtype::f32, 3);
  const Expr inner = Expr::leaf(0, Dtype::f32, {4, 6}) * Expr::constant(2, Dtype::f32);
  const Expr outer = Expr::leaf(0, Dtype::f32, {4, 6});
  const auto same = [&](const Expr& map, const Array& want) {
    EXPECT_TRUE(kit::same_bits(evaluated(substitute(map, std::array{inner}), x), want))
        << to_string(compile(std::array{map}));
  };
  const Array doubled = evaluated(inner, x);
  same(outer + Expr::constant(0, Dtype::f32), evaluated(inner + Expr::constant(0, Dtype::f32), x));
  same(permute(outer, {1, 0}), doubled.permute({1, 0}));
  same(slice(slice(outer, 1, 5, 0, -2), 0, 1, 3), doubled.slice(1, 5, 0, -2).slice(0, 1, 3));
  same(broadcast_to(slice(outer, 0, 2, 3), {5, 6}), doubled.slice(0, 2, 3).broadcast_to({5, 6}));
  same(reshape(outer, {3, 8}), doubled.reshape({3, 8}));
  same(slice(outer, 0, 1, 1), doubled.slice(0, 1, 1));

  // What lies transposed cannot be flattened by an index map, but a permutation of it can be
  // undone.
  const Expr turned =
      permute(Expr::leaf(0, Dtype::f32, {6, 4}), {1, 0}) * Expr::constant(2, Dtype::f32);
  const Array y = kit::random({6, 4}, Dtype::f32, 4);
  EXPECT_TRUE(kit::same_bits(evaluated(substitute(permute(outer, {1, 0}), std::array{turned}), y),
                             evaluated(permute(turned, {1, 0}), y)));
  EXPECT_ERROR(substitute(reshape(outer, {24}), std::array{turned}), unsupported,
               "substitute: the layout of source 0 (4, 6) does not allow its index map. "
               "Materialise it before.");
  EXPECT_ERROR(substitute(Expr::leaf(1, Dtype::f32, {4}), std::array{turned}), invalid,
               "substitute: the expression reads source 1; 1 were given.");
  EXPECT_ERROR(substitute(Expr::leaf(0, Dtype::u8, {4, 6}), std::array{turned}), invalid,
               "substitute: source 0 has dtype f32, not u8.");

  // A dense source only changes its number.
  const Expr renumbered =
      substitute(permute(outer, {1, 0}), std::array{Expr::leaf(7, Dtype::f32, {4, 6})});
  EXPECT_EQ(renumbered.node()->source, 7);
  EXPECT_EQ(renumbered.node()->strides, (Dims{1, 6}));
}

TEST(DenseLeaf, IsMemoryAsItIs) {
  EXPECT_TRUE(is_dense_leaf(kX));
  EXPECT_TRUE(is_dense_leaf(reshape(kX, {24})));
  EXPECT_FALSE(is_dense_leaf(permute(kX, {1, 0, 2})));
  EXPECT_FALSE(is_dense_leaf(slice(kX, 0, 1, 2)));
  EXPECT_FALSE(is_dense_leaf(kX + kX));
}

TEST(CompileProgram, SharesWhatIsEqualAndPrintsIt) {
  const auto number = [](double value) { return Expr::constant(value, Dtype::f32); };
  const Expr bytes = permute(Expr::leaf(0, Dtype::u8, {8, 4, 5, 3}), {0, 3, 1, 2});
  const Expr first = (cast(bytes, Dtype::f32) - number(0.13)) / number(0.31);
  const Expr second =
      (cast(permute(Expr::leaf(0, Dtype::u8, {8, 4, 5, 3}), {0, 3, 1, 2}), Dtype::f32) -
       number(0.13)) /
      number(0.31);
  const Expr row = Expr::array(kit::random({5}, Dtype::f32, 1));
  const Program program =
      compile(std::array{first * second, cast(minimum(first, row), Dtype::f16)});
  EXPECT_EQ(to_string(program),
            "for each of (8, 3, 4, 5):\n"
            "  v0: u8 = source[0] strides (60, 1, 15, 3)\n"
            "  v1: f32 = cast(v0)\n"
            "  v3: f32 = v1 - 0.13\n"
            "  v5: f32 = v3 / 0.31\n"
            "  v6: f32 = v5 * v5\n"
            "  v7: f32 = table(5,) strides (0, 0, 0, 1)\n"
            "  v8: f32 = minimum(v5, v7)\n"
            "  v9: f16 = cast(v8)\n"
            "  out[0] = v6\n"
            "  out[1] = v9\n");
}

TEST(CompileProgram, KeepsZerosOfBothSignsApart) {
  const Expr zeros = Expr::constant(0.0, Dtype::f32) / kX + Expr::constant(-0.0, Dtype::f32) / kX;
  int constants = 0;
  for (const auto& instruction : compile(std::array{zeros}).code)
    constants += instruction.opcode == Opcode::constant;
  EXPECT_EQ(constants, 2);
}

TEST(LoopNestTest, MergesAxesThatEveryArrayPassesInOneGo) {
  const Expr dense = Expr::leaf(0, Dtype::f32, {4, 1, 5, 6});
  EXPECT_EQ(loop_nest(compile(std::array{dense + dense})).shape, Dims{120});
  const Expr row = Expr::leaf(1, Dtype::f32, {5, 6});
  const LoopNest nest = loop_nest(compile(std::array{dense + row}));
  EXPECT_EQ(nest.shape, (Dims{4, 30}));
  EXPECT_EQ(nest.leaves[1], (Dims{0, 1}));
  EXPECT_EQ(loop_nest(compile(std::array{permute(dense, {3, 1, 0, 2})})).shape, (Dims{6, 20}));
  EXPECT_EQ(loop_nest(compile(std::array{Expr::leaf(0, Dtype::f32, {1, 1}, {9, 7})})).leaves[0],
            Dims{1});
}

}  // namespace
}  // namespace forebay::expr
