#include "kit/kit.h"
#include "kit/oracle.h"

#include <forebay/array/require.h>
#include <forebay/ops/argmax/argmax.h>

namespace forebay {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// A plain search with indices, one slice after another.
Array oracle(const Array& x, int axis, bool keepdims = false) {
  Dims shape, kept;
  std::int64_t before = 1, after = 1;
  for (int i = 0; i < x.rank(); ++i) {
    if (i != axis) shape.push_back(x.shape()[i]);
    kept.push_back(i == axis ? 1 : x.shape()[i]);
    if (i != axis) (i < axis ? before : after) *= x.shape()[i];
  }
  std::vector<std::int64_t> found;
  dispatch(kit::RealsAndBool{}, x.dtype(), "test", "x", [&]<class T>(Type<T>) {
    for (std::int64_t slice = 0; slice < before * after; ++slice) {
      std::int64_t best = -1;
      long double greatest = 0;
      for (std::int64_t k = 0; k < x.shape()[axis] && !std::isnan(greatest); ++k) {
        const std::int64_t i = (slice / after * x.shape()[axis] + k) * after + slice % after;
        const long double value = kit::exact(x.as<T>()[i]);
        if (best >= 0 && value <= greatest) continue;
        best = k;
        greatest = value;
      }
      found.push_back(best);
    }
  });
  return Array::from(keepdims ? kept : shape, found);
}

class ArgmaxTest : public kit::DeviceTest {
 protected:
  Array run(const Array& host, const Argmax& settings = {}) {
    const Context context = kit::context(device());
    return kit::to_host(argmax(kit::to_device(host, context), settings, context), context);
  }
  std::int64_t position(const Array& host) { return run(host).as<std::int64_t>()[0]; }
};

Array list(Dtype dtype, const std::vector<double>& values) {
  return kit::generate({static_cast<std::int64_t>(values.size())}, dtype,
                       [&](std::int64_t i) { return values[static_cast<std::size_t>(i)]; });
}

DEVICE_TEST(ArgmaxTest, IsASearchAlongEveryAxisOfEveryDtype) {
  for (const Dtype dtype : kAllDtypes) {
    if (is_complex(dtype)) continue;
    for (const Dims& shape : {Dims{1}, Dims{33}, Dims{9, 64}, Dims{7, 1}, Dims{1, 9}, Dims{33, 31},
                              Dims{600, 3}, Dims{5, 7, 300}, Dims{3, 1, 5, 2}}) {
      // Few different values, so that most slices have equal ones.
      const Array x = kit::random(shape, dtype, 3, is_unsigned(dtype) ? 0 : -9, 9);
      for (int axis = 0; axis < shape.rank; ++axis) {
        EXPECT_TRUE(kit::same_bits(run(x, {.axis = axis}), oracle(x, axis)))
            << name_of(dtype) << " " << to_string(shape) << " axis " << axis;
        EXPECT_TRUE(kit::same_bits(run(x, {.axis = axis - shape.rank, .keepdims = true}),
                                   oracle(x, axis, true)))
            << name_of(dtype) << " " << to_string(shape) << " axis " << axis;
      }
    }
  }
}

DEVICE_TEST(ArgmaxTest, SearchesLongAxesInPieces) {
  for (const Dims& shape :
       {Dims{300'001}, Dims{3, 100'000}, Dims{70'001, 2}, Dims{9'000, 40}, Dims{2, 5'000, 300}}) {
    for (const auto& [dtype, most] : {std::pair{Dtype::f32, 1e30}, {Dtype::u8, 255.0}}) {
      // u8: equal ones in every piece. f32: one, anywhere.
      const Array x = kit::random(shape, dtype, 4, 0, most);
      for (int axis = 0; axis < shape.rank; ++axis) {
        EXPECT_TRUE(kit::same_bits(run(x, {.axis = axis}), oracle(x, axis)))
            << name_of(dtype) << " " << to_string(shape) << " axis " << axis;
      }
    }
  }
  for (const std::int64_t where : {0, 65'535, 65'536, 199'999, 299'999}) {
    const Array nan = kit::generate({300'000}, Dtype::f16, [&](std::int64_t i) {
      return i == where || i == 299'999 ? kNaN : i == 100 ? kInfinity : 0.0;
    });
    EXPECT_EQ(position(nan), where);
  }
}

DEVICE_TEST(ArgmaxTest, SearchesManyShortRows) {
  for (const std::int64_t rows : {1, 2, 10, 17}) {
    const Array x = kit::random({20'001, rows}, Dtype::i16, 5, -9, 9);
    EXPECT_TRUE(kit::same_bits(run(x), oracle(x, 1)));
    const Array pairs = kit::random({7'001, rows, 3}, Dtype::bf16, 6);
    EXPECT_TRUE(kit::same_bits(run(pairs, {.axis = 1}), oracle(pairs, 1)));
  }
}

DEVICE_TEST(ArgmaxTest, TakesTheFirstOfEqualElementsAndTheFirstNaN) {
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16, Dtype::f32, Dtype::f64}) {
    EXPECT_EQ(position(list(dtype, {1, 3, 2, 3, 3})), 1);
    EXPECT_EQ(position(list(dtype, {-1, -0.0, 0.0})), 1);
    EXPECT_EQ(position(list(dtype, {-kInfinity, -kInfinity})), 0);
    EXPECT_EQ(position(list(dtype, {-kInfinity, -6e4, -kInfinity})), 1);
    EXPECT_EQ(position(list(dtype, {1, kInfinity, kNaN, kInfinity, kNaN})), 2);
    EXPECT_EQ(position(list(dtype, {kNaN, kInfinity, kNaN})), 0);
    EXPECT_EQ(position(list(dtype, {0, -kNaN, 5})), 1);
  }
  EXPECT_EQ(position(list(Dtype::boolean, {0, 0, 0})), 0);
  EXPECT_EQ(position(list(Dtype::boolean, {0, 1, 1})), 1);
}

DEVICE_TEST(ArgmaxTest, ComparesIntegersExactly) {
  constexpr std::int64_t k53 = std::int64_t{1} << 53;
  EXPECT_EQ(position(Array::from<std::int64_t>({4}, {k53, k53 + 2, k53 + 3, k53 + 1})), 2);
  EXPECT_EQ(position(Array::from<std::int64_t>({3}, {INT64_MIN, INT64_MAX - 1, INT64_MAX})), 2);
  EXPECT_EQ(position(Array::from<std::uint64_t>({3}, {1, UINT64_MAX - 1, UINT64_MAX})), 2);
  EXPECT_EQ(position(Array::from<std::int8_t>({3}, {-128, -1, -2})), 1);
}

DEVICE_TEST(ArgmaxTest, ReadsEveryMemoryLayout) {
  const Array x = kit::random({6, 10, 8}, Dtype::f32, 9);
  for (const kit::Layout layout : kit::layouts()) {
    for (int axis = 0; axis < 3; ++axis)
      EXPECT_TRUE(kit::same_bits(run(kit::with_layout(x, layout), {.axis = axis}), oracle(x, axis)))
          << static_cast<int>(layout) << " axis " << axis;
  }
}

DEVICE_TEST(ArgmaxTest, OfNoSlicesIsEmpty) {
  EXPECT_EQ(run(kit::random({0, 5}, Dtype::f32, 1)).shape(), (Dims{0}));
  EXPECT_EQ(run(kit::random({4, 0}, Dtype::f32, 1), {.axis = 0}).shape(), (Dims{0}));
  EXPECT_EQ(run(kit::random({0, 5, 3}, Dtype::f32, 1), {.axis = 1, .keepdims = true}).shape(),
            (Dims{0, 1, 3}));
}

void infer(const Argmax& settings, Dtype dtype, const Dims& shape) {
  const ArraySpec x{dtype, shape};
  Op::with(find_op("argmax"), settings).infer({&x, 1});
}

TEST(ArgmaxErrors, SayWhatIsWrong) {
  EXPECT_ERROR(infer({}, Dtype::c64, {4}), unsupported,
               "argmax: `x` has dtype c64; supported: bool, integers, f16, bf16, f32, f64. Add an "
               "`abs` stage before it.");
  EXPECT_ERROR(infer({}, Dtype::f32, {}), invalid,
               "argmax: `axis` names axis -1, but `x` is a scalar, shape (); it must have at least "
               "one axis.");
  EXPECT_ERROR(infer({.axis = 2}, Dtype::f32, {4, 5}), invalid,
               "argmax: `axis` names axis 2, but `x` has shape (4, 5); its axes are -2 to 1.");
  EXPECT_ERROR(infer({.axis = -3}, Dtype::f32, {4, 5}), invalid,
               "argmax: `axis` names axis -3, but `x` has shape (4, 5); its axes are -2 to 1.");
  EXPECT_ERROR(infer({}, Dtype::f32, {3, 0}), invalid,
               "argmax: axis -1 of `x` with shape (3, 0) is empty; it must have at least one "
               "element. Search another `axis`.");
  EXPECT_ERROR(infer({.axis = 1}, Dtype::f32, {0, 0}), invalid,
               "argmax: axis 1 of `x` with shape (0, 0) is empty; it must have at least one "
               "element. Search another `axis`.");
}

TEST(ArgmaxPlan, KnowsWhenSamplesMix) {
  const OpDef& def = find_op("argmax").def;
  const ArraySpec x{Dtype::f32, {4, 5}};
  for (const auto& [axis, mixes] : {std::pair{0, true}, {1, false}, {-1, false}, {-2, true}}) {
    const Argmax settings{.axis = axis};
    EXPECT_EQ(def.mixes_samples(&settings, {&x, 1}), mixes) << axis;
  }
}

}  // namespace
}  // namespace forebay
