#include "kit/kit.h"

#include <forebay/array/require.h>
#include <forebay/ops/frame/frame.h>

namespace forebay {
namespace {

class FrameTest : public kit::DeviceTest {};

Array run(const Array& host, const Frame& settings, const Context& context) {
  return kit::to_host(frame(kit::to_device(host, context), settings, context), context);
}

/// The frames along `axis`, element by element.
std::vector<std::complex<double>> frames_of(const Array& x, const Frame& settings) {
  const int axis = static_cast<int>(settings.axis < 0 ? settings.axis + x.rank() : settings.axis);
  const auto all = kit::complex_values(x);
  std::int64_t outer = 1, inner = 1;
  for (int i = 0; i < x.rank(); ++i)
    (i < axis ? outer : inner) *= i == axis ? 1 : x.shape()[i];
  const std::int64_t extent = x.shape()[axis];
  std::vector<std::complex<double>> want;
  for (std::int64_t o = 0; o < outer; ++o) {
    for (std::int64_t start = 0; start + settings.length <= extent; start += settings.hop) {
      for (std::int64_t i = 0; i < settings.length; ++i) {
        for (std::int64_t k = 0; k < inner; ++k)
          want.push_back(all[static_cast<std::size_t>((o * extent + start + i) * inner + k)]);
      }
    }
  }
  return want;
}

DEVICE_TEST(FrameTest, CutsEveryDtypeLayoutAndAxis) {
  const Context context = kit::context(device());
  for (const Dtype dtype : kAllDtypes) {
    const Array x = kit::random({5, 37, 3}, dtype, 1);
    for (const kit::Layout layout : kit::layouts()) {
      const Array strided = kit::with_layout(x, layout);
      EXPECT_TRUE(kit::near(run(strided, {.length = 8, .hop = 3, .axis = 1}, context),
                            frames_of(x, {.length = 8, .hop = 3, .axis = 1}), 0))
          << name_of(dtype) << ", layout " << static_cast<int>(layout);
    }
    EXPECT_TRUE(kit::near(run(x, {.length = 2, .hop = 1}, context), frames_of(x, {2, 1, -1}), 0));
    EXPECT_TRUE(
        kit::near(run(x, {.length = 3, .hop = 2, .axis = 0}, context), frames_of(x, {3, 2, 0}), 0));
  }
}

DEVICE_TEST(FrameTest, LeavesOutWhatIsBehindTheLastWholeFrame) {
  const Context context = kit::context(device());
  for (const std::int64_t extent : {1, 7, 8, 9, 400, 1025}) {
    const Array x = kit::random({3, extent}, Dtype::f32, 2);
    for (const Frame& settings : {Frame{1, 1}, Frame{7, 7}, Frame{8, 5}, Frame{3, 100},
                                  Frame{400, 160}, Frame{1025, 2000000000000000000}}) {
      if (settings.length > extent) continue;
      const Array got = run(x, settings, context);
      EXPECT_EQ(got.shape(),
                (Dims{3, 1 + (extent - settings.length) / settings.hop, settings.length}));
      EXPECT_TRUE(kit::near(got, frames_of(x, settings), 0));
    }
  }
  EXPECT_EQ(run(kit::random({0, 9}, Dtype::f32, 2), {.length = 4, .hop = 2}, context).shape(),
            (Dims{0, 3, 4}));
}

TEST(FrameExpression, IsAnIndexMapThatAReshapeKeepsOnlyWithoutOverlap) {
  const auto x = expr::Expr::leaf(0, Dtype::f32, {4, 1200});
  const auto overlapping = expr::frame(x, -1, 400, 160);
  EXPECT_EQ(overlapping.node()->opcode, expr::Opcode::leaf);
  EXPECT_EQ(overlapping.shape(), (Dims{4, 6, 400}));
  EXPECT_EQ(overlapping.node()->strides, (Dims{1200, 160, 1}));
  EXPECT_FALSE(expr::is_dense_leaf(overlapping));
  EXPECT_FALSE(expr::can_reshape(overlapping, {24, 400}));
  EXPECT_FALSE(expr::can_reshape(overlapping, {4, 2400}));
  EXPECT_TRUE(expr::can_reshape(overlapping, {2, 2, 6, 20, 20}));

  const auto side_by_side = expr::frame(x, -1, 400, 400);
  EXPECT_TRUE(expr::is_dense_leaf(side_by_side));
  EXPECT_TRUE(expr::can_reshape(side_by_side, {12, 400}));
  EXPECT_FALSE(expr::can_reshape(expr::frame(x, -1, 399, 399), {12, 399}));
  EXPECT_TRUE(expr::is_dense_leaf(expr::frame(x, -1, 1200, 7)));
}

TEST(FrameExpression, ReadsThroughWhatIsBeforeIt) {
  const Context context = kit::context(Device::cpu());
  const Array x = kit::random({3, 50}, Dtype::f32, 3);
  const auto leaf = expr::Expr::leaf(0, Dtype::f32, {3, 50});
  const auto doubled = leaf + leaf;
  const Array want = eval(expr::frame(doubled, 1, 8, 3), {x}, context);
  const Array got =
      eval(expr::substitute(expr::frame(leaf, 1, 8, 3), std::array{doubled}), {x}, context);
  context.stream.synchronize();
  EXPECT_TRUE(kit::same_bits(got, want));
}

TEST(FrameErrors, SayWhatIsAllowed) {
  const Context context = kit::context(Device::cpu());
  const Array x = kit::random({3, 100}, Dtype::f32, 1);
  EXPECT_ERROR(frame(x, {.length = 400, .hop = 160}, context), invalid,
               "frame: `length` is 400, but `x` of shape (3, 100) has 100 elements along axis 1; "
               "it must be at most that.");
  EXPECT_ERROR(frame(x, {.length = 4, .hop = 0}, context), invalid,
               "frame: `hop` is 0; it must be at least 1.");
  EXPECT_ERROR(frame(x, {.length = 4, .hop = 2, .axis = 2}, context), invalid,
               "frame: `axis` is 2, but `x` has shape (3, 100); it must be from -2 to 1.");
  EXPECT_ERROR(frame(kit::random({}, Dtype::f32, 1), {.length = 4, .hop = 2}, context), invalid,
               "frame: `x` is a scalar, shape (); it has no axis.");
  EXPECT_ERROR(
      frame(kit::random({1, 1, 1, 1, 1, 1, 1, 4}, Dtype::f32, 1), {.length = 4, .hop = 2}, context),
      invalid,
      "frame: `x` of shape (1, 1, 1, 1, 1, 1, 1, 4) has 8 axes already; frames add one, and arrays "
      "have at most 8.");
}

}  // namespace
}  // namespace forebay
