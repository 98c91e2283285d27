// What normalize says of settings and shapes, before there is data.
#include "kit/kit.h"

#include <limits>

#include <forebay/array/require.h>
#include <forebay/ops/normalize/normalize.h>
#include <forebay/ops/registry.h>

namespace forebay {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

void infer(const Normalize& settings, Dtype dtype, const Dims& shape) {
  const ArraySpec x{dtype, shape};
  Op::with(find_op("normalize"), settings).infer({&x, 1});
}

TEST(NormalizeErrors, SayWhatIsWrong) {
  EXPECT_ERROR(infer({}, Dtype::c64, {4}), unsupported,
               "normalize: `x` has dtype c64; supported: bool, integers, f16, bf16, f32, f64. Add "
               "an `abs` stage before it.");
  EXPECT_ERROR(infer({.dtype = Dtype::u8}, Dtype::f32, {4}), invalid,
               "normalize: `dtype` is u8; it must be f16, bf16, f32 or f64.");
  EXPECT_ERROR(infer({.epsilon = -1}, Dtype::f32, {4}), invalid,
               "normalize: `epsilon` is -1; it must be at least 0.");
  EXPECT_ERROR(infer({.axes = {{2}}}, Dtype::f32, {4, 5}), invalid,
               "normalize: `axes` names axis 2, but `x` has shape (4, 5); its axes are -2 to 1.");
  EXPECT_ERROR(infer({.axes = {{1, -1}}}, Dtype::f32, {4, 5}), invalid,
               "normalize: `axes` names axis 1 twice; give each axis once.");
  EXPECT_ERROR(infer({.axes = {{1}}, .layout = Layout::nc}, Dtype::f32, {4, 5}), invalid,
               "normalize: `axes` and `layout` are both given; give one of them.");
  EXPECT_ERROR(infer({.axes = {{0, 1}}, .per_sample = true}, Dtype::f32, {4, 5}), invalid,
               "normalize: `axes` has axis 0, which `per_sample` keeps; leave one of them out.");
  EXPECT_ERROR(
      infer({.per_sample = true}, Dtype::f32, {}), invalid,
      "normalize: `per_sample` is true, but `x` has rank 0; its first axis must be the samples.");
  EXPECT_ERROR(infer({.layout = Layout::nchw}, Dtype::f32, {4, 5}), invalid,
               "normalize: `layout` is NCHW, but `x` has shape (4, 5); it must have 4 axes. Use "
               "`axes` for another layout.");
  EXPECT_ERROR(infer({.per_sample = true}, Dtype::f32, {4}), invalid,
               "normalize: no axis of `x` with shape (4,) is left to compute statistics over; name "
               "some in `axes`.");
  EXPECT_ERROR(infer({.mean = {{1, 2, 3}}, .std = 1}, Dtype::f32, {4, 3}), invalid,
               "normalize: `mean` has 3 values; say which axis they belong to with `layout` or "
               "`axes`, or give one value.");
  EXPECT_ERROR(infer({.std = {{1, 2}}, .layout = Layout::nc}, Dtype::f32, {4, 3}), invalid,
               "normalize: `std` has 2 values, but `x` of shape (4, 3) has 3 along axis 1; give "
               "that many or one.");
  EXPECT_ERROR(infer({.std = {{1, 2}}, .axes = {{3}}}, Dtype::f32, {4, 3, 5, 6}), invalid,
               "normalize: `std` has 2 values, but `x` of shape (4, 3, 5, 6) has 15 along axes (1, "
               "2); give that many or one.");
  EXPECT_ERROR(infer({.mean = Reals{}}, Dtype::f32, {4}), invalid,
               "normalize: `mean` is empty; give at least one value, or leave it out.");
  EXPECT_ERROR(infer({.mean = kNaN}, Dtype::f32, {4}), invalid,
               "normalize: `mean` is nan; it must be finite.");
  EXPECT_ERROR(infer({.mean = {{1, -kInfinity, 2}}, .layout = Layout::nc}, Dtype::f32, {4, 3}),
               invalid, "normalize: `mean` is -inf; it must be finite.");
  EXPECT_ERROR(infer({.zero_std = ZeroStd::error}, Dtype::f32, {4}), invalid,
               "normalize: `zero_std` is error, which needs a constant `std`; use divide or zero "
               "for a computed one.");
  EXPECT_ERROR(
      infer({.std = 0, .zero_std = ZeroStd::error}, Dtype::f32, {4}), invalid,
      "normalize: `std` has a 0, and `zero_std` is error; give a larger std or an `epsilon`.");
  infer({.std = 0, .epsilon = 1e-5, .zero_std = ZeroStd::error}, Dtype::f32, {4});
}

TEST(NormalizePlan, KnowsWhenSamplesMix) {
  const OpDef& def = find_op("normalize").def;
  const ArraySpec x{Dtype::f32, {4, 5}};
  const auto mixes = [&](const Normalize& settings) {
    return def.mixes_samples(&settings, {&x, 1});
  };
  EXPECT_TRUE(mixes({}));
  EXPECT_TRUE(mixes({.layout = Layout::nc}));
  EXPECT_FALSE(mixes({.per_sample = true}));
  EXPECT_FALSE(mixes({.mean = 1, .std = 2}));
}

}  // namespace
}  // namespace forebay
