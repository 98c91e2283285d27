// How kernels go through memory: decided from layouts alone.
#include "kit/kit.h"

#include <array>

#include <forebay/ops/expr/cuda_walk.h>

namespace forebay::expr {
namespace {

using Ways = std::vector<Way>;

CudaWalk walk_of(const Expr& expression) { return cuda_walk(compile(std::array{expression})); }
Expr table(const Dims& shape, const Dims& over) {
  return broadcast_to(Expr::leaf(1, Dtype::f32, shape), over);
}

TEST(CudaWalk, IsFlatWhereEveryArrayIsDenseOrOneElement) {
  const Expr x = Expr::leaf(0, Dtype::f16, {6, 5, 300});
  const CudaWalk walk = walk_of(cast(x, Dtype::f32) + table({}, x.shape()));
  EXPECT_TRUE(walk.flat);
  EXPECT_EQ(walk.nest.shape, Dims{9000});
  EXPECT_EQ(walk.leaves, (Ways{Way::along, Way::scalar}));
  EXPECT_EQ(walk.pack, 4);  // 16 bytes of the widest array
  EXPECT_TRUE(walk_of(permute(x, {0, 1, 2})).flat);
  EXPECT_FALSE(walk_of(slice(x, 0, 0, 6, 2)).flat);
}

TEST(CudaWalk, TakesRowsOfSlicesAndTables) {
  const Expr x = Expr::leaf(0, Dtype::f32, {6, 5, 300});
  const CudaWalk walk = walk_of(slice(x, 1, 1, 4) + table({300}, {6, 3, 300}));
  EXPECT_FALSE(walk.flat);
  EXPECT_EQ(walk.form, CudaWalk::Form::items);
  EXPECT_EQ(walk.leaves, (Ways{Way::along, Way::along}));
  EXPECT_EQ(walk.outer_rank(), 2);
  EXPECT_EQ(walk_of(x * table({5, 1}, x.shape())).leaves, (Ways{Way::along, Way::constant}));
  EXPECT_EQ(walk_of(slice(x, 2, 0, 300, 2)).leaves, Ways{Way::apart});
  EXPECT_EQ(walk_of(slice(x, 2, INT64_MAX, INT64_MIN, -1)).leaves, Ways{Way::apart});
}

TEST(CudaWalk, TakesTheChannelsOfPixelsTogether) {
  const Expr bytes = Expr::leaf(0, Dtype::u8, {8, 20, 30, 3});
  const Expr pixels = cast(cast(bytes, Dtype::f32) - table({3}, bytes.shape()), Dtype::f16);
  const CudaWalk planes = walk_of(permute(pixels, {0, 3, 1, 2}));
  EXPECT_EQ(planes.together, 3);
  EXPECT_EQ(planes.nest.shape, (Dims{8, 3, 600}));
  EXPECT_EQ(planes.leaves, (Ways{Way::interleaved, Way::constant}));
  EXPECT_EQ(planes.outputs, Ways{Way::along});
  EXPECT_EQ(planes.pack, 8);  // the table is not moved in packs

  const CudaWalk same_order = walk_of(pixels);
  EXPECT_EQ(same_order.together, 3);
  EXPECT_EQ(same_order.outputs, Ways{Way::interleaved});
  const CudaWalk back = walk_of(permute(Expr::leaf(0, Dtype::f32, {8, 3, 20, 30}), {0, 2, 3, 1}));
  EXPECT_EQ(back.together, 3);
  EXPECT_EQ(back.leaves, Ways{Way::along});
  EXPECT_EQ(back.outputs, Ways{Way::interleaved});
  // Cropped pixels lie in rows that are further apart.
  EXPECT_EQ(walk_of(permute(slice(slice(pixels, 1, 2, 18), 2, 3, 27), {0, 3, 1, 2})).together, 3);
}

TEST(CudaWalk, ReadsPacksOneByOneWhereAnAccessMayNotStart) {
  const Expr x = Expr::leaf(0, Dtype::f32, {6, 16});
  EXPECT_FALSE(walk_of(slice(x, 1, 4, 12)).loose[0]);
  EXPECT_TRUE(walk_of(slice(x, 1, 3, 11)).loose[0]);  // starts between
  EXPECT_TRUE(walk_of(slice(Expr::leaf(0, Dtype::f32, {6, 15}), 1, 0, 8)).loose[0]);  // rows do
  EXPECT_FALSE(walk_of(slice(x, 1, 0, 16, 2)).loose[0]);                              // no packs
}

TEST(CudaWalk, TurnsSquaresInSharedMemory) {
  const Expr x = Expr::leaf(0, Dtype::u8, {30, 80, 90});
  const CudaWalk walk = walk_of(cast(permute(x, {2, 0, 1}), Dtype::f64));
  EXPECT_EQ(walk.form, CudaWalk::Form::tiles);
  EXPECT_EQ(walk.leaves, Ways{Way::across});
  EXPECT_EQ(walk.side, 128);
  EXPECT_EQ(walk.pack, 4);  // a word of bytes, whatever is written
  EXPECT_EQ(walk_of(permute(Expr::leaf(0, Dtype::c128, {80, 90}), {1, 0})).side, 32);
  // Few rows are read as they lie; many leaves do not fit.
  EXPECT_EQ(walk_of(permute(Expr::leaf(0, Dtype::f32, {80, 7}), {1, 0})).form,
            CudaWalk::Form::items);
  Expr sum = permute(Expr::leaf(0, Dtype::c128, {80, 90}), {1, 0});
  for (int i = 1; i < 13; ++i)
    sum = sum + permute(Expr::leaf(i, Dtype::c128, {80, 90}), {1, 0});
  EXPECT_EQ(walk_of(sum).form, CudaWalk::Form::items);
}

TEST(CudaWalk, FollowsTheOrderOfTheFirstOutput) {
  const Program program = compile(std::array{Expr::leaf(0, Dtype::f32, {30, 70})});
  const CudaWalk turned = cuda_walk(program, std::array{Dims{1, 30}});
  EXPECT_EQ(turned.nest.shape, (Dims{70, 30}));
  EXPECT_EQ(turned.form, CudaWalk::Form::tiles);
  EXPECT_EQ(turned.leaves, Ways{Way::across});
  const Program same = compile(std::array{Expr::leaf(0, Dtype::f32, {30, 70}, {1, 30})});
  EXPECT_TRUE(cuda_walk(same, std::array{Dims{1, 30}}).flat);
}

TEST(CudaWalk, CountsIn64BitsWhere32AreTooFew) {
  EXPECT_FALSE(walk_of(Expr::leaf(0, Dtype::u8, {INT32_MAX})).wide);
  EXPECT_TRUE(walk_of(permute(Expr::leaf(0, Dtype::u8, {1 << 16, 1 << 16}), {1, 0})).wide);
}

}  // namespace
}  // namespace forebay::expr
