#include <forebay/ops/matmul/matmul.h>

#include "kit/kit.h"

#include <cmath>
#include <random>

#include <forebay/array/dispatch.h>
#include <forebay/array/require.h>
#include <forebay/ops/matmul/product.h>
#include <forebay/ops/registry.h>

namespace forebay {
namespace {

using Complex = std::complex<double>;
using LongComplex = std::complex<long double>;
using Integers = Types<std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t, std::int8_t,
                       std::int16_t, std::int32_t, std::int64_t>;

/// NumPy's shapes, written out once more: the products' number, their extents, where each starts.
struct Shapes {
  Dims x, other, batch;
  std::int64_t m, k, n;
  Dims out;

  Shapes(Dims x_shape, Dims other_shape, bool transposed) : x(x_shape), other(other_shape) {
    if (x.rank == 1) x = {1, x[0]};
    if (other.rank == 1) {
      other = {other[0], 1};
    } else if (transposed) {
      std::swap(other[other.rank - 1], other[other.rank - 2]);
    }
    m = x[x.rank - 2];
    k = x[x.rank - 1];
    n = other[other.rank - 1];
    Dims x_batch = x, other_batch = other;
    x_batch.rank -= 2;
    other_batch.rank -= 2;
    batch = broadcast_shapes(x_batch, other_batch);
    out = batch;
    if (x_shape.rank > 1) out.push_back(m);
    if (other_shape.rank > 1) out.push_back(n);
  }

  /// The number of the operand's matrix that product `b` reads.
  std::int64_t matrix(const Dims& operand, std::int64_t b) const {
    std::int64_t index = 0, step = 1;
    for (int i = 1; i <= batch.rank; ++i) {
      const std::int64_t at = b % batch[batch.rank - i];
      b /= batch[batch.rank - i];
      if (i + 2 > operand.rank) continue;
      const std::int64_t extent = operand[operand.rank - 2 - i];
      index += (extent == 1 ? 0 : at) * step;
      step *= extent;
    }
    return index;
  }
  std::int64_t x_index(std::int64_t b, std::int64_t i, std::int64_t l) const {
    return (matrix(x, b) * m + i) * k + l;
  }
  std::int64_t other_index(std::int64_t b, std::int64_t l, std::int64_t j, bool transposed) const {
    return matrix(other, b) * k * n + (transposed ? j * k + l : l * n + j);
  }
};

/// The exact product, and for each element the sum of |x| |other|, which rounding errors are
/// measured by.
struct Want {
  Dims shape;
  std::vector<Complex> values;
  std::vector<double> sizes;
  std::int64_t k;
};

Want product(const std::vector<Complex>& x, const std::vector<Complex>& other, const Shapes& shapes,
             bool transposed) {
  Want want{shapes.out, {}, {}, shapes.k};
  for (std::int64_t b = 0; b < count_of(shapes.batch); ++b) {
    for (std::int64_t i = 0; i < shapes.m; ++i) {
      for (std::int64_t j = 0; j < shapes.n; ++j) {
        LongComplex sum = 0;
        double size = 0;
        for (std::int64_t l = 0; l < shapes.k; ++l) {
          const Complex a = x[static_cast<std::size_t>(shapes.x_index(b, i, l))];
          const Complex c =
              other[static_cast<std::size_t>(shapes.other_index(b, l, j, transposed))];
          sum += LongComplex(a) * LongComplex(c);
          size += std::abs(a) * std::abs(c);
        }
        want.values.emplace_back(static_cast<double>(sum.real()), static_cast<double>(sum.imag()));
        want.sizes.push_back(size);
      }
    }
  }
  return want;
}

std::vector<Complex> rounded(const Array& x, std::optional<Dtype> to) {
  std::vector<Complex> values = kit::complex_values(kit::to_host(x, kit::context(Device::cpu())));
  for (Complex& value : values) {
    if (to == Dtype::f16) value = static_cast<float>(Half(static_cast<float>(value.real())));
    if (to == Dtype::bf16) value = static_cast<float>(BFloat16(static_cast<float>(value.real())));
  }
  return values;
}

/// |error| <= (k + 4) eps(sum) sum |x| |other| + eps(result) |result| (+ `extra` sum |x| |other|).
testing::AssertionResult close(const Array& got, const Want& want, Dtype sum, double extra = 0) {
  if (got.shape() != want.shape) {
    return testing::AssertionFailure()
           << "shape " << to_string(got.shape()) << ", not " << to_string(want.shape);
  }
  const double terms =
      static_cast<double>(want.k + 4) * kit::epsilon(real_of(sum)) * (is_complex(sum) ? 2 : 1);
  for (std::size_t i = 0; i < want.values.size(); ++i) {
    const Complex value = kit::complex_value(got.view(), static_cast<std::int64_t>(i));
    const double bound = (terms + extra) * want.sizes[i] +
                         kit::epsilon(real_of(got.dtype())) * std::abs(want.values[i]) * 1.01;
    if (!(std::abs(value - want.values[i]) <= bound)) {
      return testing::AssertionFailure()
             << fmt::format("element {}: ({}, {}), not ({}, {}); bound {}", i, value.real(),
                            value.imag(), want.values[i].real(), want.values[i].imag(), bound);
    }
  }
  return testing::AssertionSuccess();
}

Array run(const Array& x, const Array& other, const Matmul& settings, const Context& context) {
  return kit::to_host(
      matmul(kit::to_device(x, context), kit::to_device(other, context), settings, context),
      context);
}

struct Pair {
  Dims x, other;
};
const std::vector<Pair> kPairs = {
    {{7}, {7}},
    {{5, 7}, {7}},
    {{7}, {7, 4}},
    {{5, 7}, {7, 4}},
    {{1, 1}, {1, 1}},
    {{3, 5, 7}, {7, 4}},
    {{3, 5, 7}, {7}},
    {{3, 5, 7}, {3, 7, 4}},
    {{5, 7}, {3, 7, 4}},
    {{7}, {3, 7, 4}},
    {{2, 1, 5, 7}, {3, 7, 4}},
    {{2, 3, 5, 7}, {2, 1, 7, 4}},
    {{2, 1, 3, 5, 7}, {2, 2, 1, 7, 4}},
    {{4, 1, 2, 1, 5, 3}, {1, 3, 1, 2, 3, 2}},
    {{1, 5, 7}, {1, 7, 4}},
    {{129, 65}, {65, 131}},
    {{70, 1000}, {1000, 20}},
    {{2100, 9}, {9, 150}},
    {{2, 70, 33}, {2, 33, 65}},
    {{2, 2100}, {2100, 3}},
    // Nothing to sum, nothing to give.
    {{3, 0}, {0, 4}},
    {{0}, {0}},
    {{3, 2, 0}, {3, 0, 3}},
    {{0, 7}, {7, 4}},
    {{5, 7}, {7, 0}},
    {{0, 5, 7}, {7, 4}},
    {{0, 5, 7}, {1, 7, 4}},
};

class MatmulTest : public kit::DeviceTest {};

DEVICE_TEST(MatmulTest, EveryShapeAndFloat) {
  const Context context = kit::context(device());
  for (const Dtype dtype :
       {Dtype::f16, Dtype::bf16, Dtype::f32, Dtype::f64, Dtype::c64, Dtype::c128}) {
    const Dtype sum = size_of(dtype) == 2 ? Dtype::f32 : dtype;
    for (const auto& [x_shape, other_shape] : kPairs) {
      for (const bool transposed : {false, true}) {
        if (transposed && other_shape.rank == 1) continue;
        Dims stored = other_shape;
        if (transposed) std::swap(stored[stored.rank - 1], stored[stored.rank - 2]);
        const Array x = kit::random(x_shape, dtype, 1), other = kit::random(stored, dtype, 2);
        const Array got = run(x, other, {.transpose_other = transposed}, context);
        EXPECT_EQ(got.dtype(), dtype);
        const Shapes shapes(x_shape, stored, transposed);
        EXPECT_TRUE(close(
            got, product(kit::complex_values(x), kit::complex_values(other), shapes, transposed),
            sum))
            << name_of(dtype) << " " << to_string(x_shape) << " " << to_string(stored) << " "
            << transposed;
      }
    }
  }
}

/// Every bit of the operands is used, so a route through floats would show.
DEVICE_TEST(MatmulTest, EveryShapeAndInteger) {
  const Context context = kit::context(device());
  for (const Dtype dtype : kAllDtypes) {
    if (!is_integer(dtype)) continue;
    dispatch(Integers{}, dtype, "test", "x", [&]<class T>(Type<T>) {
      std::mt19937_64 engine(3);
      const auto random = [&](const Dims& shape) {
        Array array = kit::random(shape, dtype, 1);
        for (std::int64_t i = 0; i < array.count(); ++i)
          array.as<T>()[i] = static_cast<T>(engine());
        return array;
      };
      for (const auto& [x_shape, other_shape] : kPairs) {
        for (const bool transposed : {false, true}) {
          if (transposed && other_shape.rank == 1) continue;
          Dims stored = other_shape;
          if (transposed) std::swap(stored[stored.rank - 1], stored[stored.rank - 2]);
          const Array x = random(x_shape), other = random(stored);
          const Shapes shapes(x_shape, stored, transposed);
          Array want = kit::random(shapes.out, dtype, 1);
          for (std::int64_t e = 0; e < want.count(); ++e) {
            const std::int64_t j = e % shapes.n, i = e / shapes.n % shapes.m,
                               b = e / shapes.n / shapes.m;
            std::uint64_t sum = 0;
            for (std::int64_t l = 0; l < shapes.k; ++l) {
              sum += static_cast<std::uint64_t>(x.as<T>()[shapes.x_index(b, i, l)]) *
                     static_cast<std::uint64_t>(
                         other.as<T>()[shapes.other_index(b, l, j, transposed)]);
            }
            want.as<T>()[e] = static_cast<T>(sum);
          }
          EXPECT_TRUE(kit::same_bits(run(x, other, {.transpose_other = transposed}, context), want))
              << name_of(dtype) << " " << to_string(x_shape) << " " << to_string(stored) << " "
              << transposed;
        }
      }
    });
  }
}

DEVICE_TEST(MatmulTest, EveryLayout) {
  const Context context = kit::context(device());
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16, Dtype::f32, Dtype::c128, Dtype::i16}) {
    const Array x = kit::random({3, 5, 7}, dtype, 1), other = kit::random({3, 7, 9}, dtype, 2);
    const Array want = run(x, other, {}, context);
    for (const kit::Layout a : kit::layouts()) {
      for (const kit::Layout b : kit::layouts()) {
        const Array got = run(kit::with_layout(x, a), kit::with_layout(other, b), {}, context);
        EXPECT_TRUE(kit::near(got, kit::complex_values(want), 0,
                              is_integer(dtype) ? 0 : 500 * kit::epsilon(dtype)))
            << name_of(dtype) << " " << static_cast<int>(a) << " " << static_cast<int>(b);
      }
    }
  }
}

DEVICE_TEST(MatmulTest, ComputeRoundsTheOperands) {
  const Context context = kit::context(device());
  const Array x = kit::random({33, 100}, Dtype::f32, 1),
              other = kit::random({100, 47}, Dtype::f32, 2);
  const Shapes shapes(x.shape(), other.shape(), false);
  for (const Compute compute : {Compute::f16, Compute::bf16}) {
    const Dtype to = compute == Compute::f16 ? Dtype::f16 : Dtype::bf16;
    const Want want = product(rounded(x, to), rounded(other, to), shapes, false);
    EXPECT_TRUE(close(run(x, other, {.compute = compute}, context), want, Dtype::f32));
    EXPECT_TRUE(close(run(x, other, {.compute = compute, .dtype = to}, context), want, Dtype::f32));
    EXPECT_TRUE(
        close(run(x, other, {.compute = compute, .dtype = Dtype::f64}, context), want, Dtype::f32));
  }
  const Want want = product(rounded(x, {}), rounded(other, {}), shapes, false);
  // tf32 keeps 11 bits of each operand, and the rest may be cut off.
  EXPECT_TRUE(close(run(x, other, {.compute = Compute::tf32}, context), want, Dtype::f32, 0x1p-9));
  const Array wide = run(x, other, {.compute = Compute::f64, .dtype = Dtype::f64}, context);
  EXPECT_EQ(wide.dtype(), Dtype::f64);
  EXPECT_TRUE(close(wide, want, Dtype::f64));
  const Array once = run(x, other, {.compute = Compute::f64}, context);
  EXPECT_EQ(once.dtype(), Dtype::f32);
  EXPECT_TRUE(close(once, want, Dtype::f64)) << "sums in f64, one rounding";
}

DEVICE_TEST(MatmulTest, DtypeOfTheResult) {
  const Context context = kit::context(device());
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16, Dtype::f32, Dtype::f64}) {
    const Array x = kit::random({6, 20}, dtype, 1), other = kit::random({20, 10}, dtype, 2);
    const Want want =
        product(rounded(x, {}), rounded(other, {}), {{6, 20}, {20, 10}, false}, false);
    for (const Dtype to : {Dtype::f16, Dtype::bf16, Dtype::f32, Dtype::f64}) {
      const Array got = run(x, other, {.dtype = to}, context);
      EXPECT_EQ(got.dtype(), to);
      EXPECT_TRUE(close(got, want, dtype == Dtype::f64 ? dtype : Dtype::f32))
          << name_of(dtype) << " to " << name_of(to);
    }
  }
  const Array x = kit::random({6, 20}, Dtype::c64, 1), other = kit::random({20, 10}, Dtype::c64, 2);
  const Want want = product(rounded(x, {}), rounded(other, {}), {{6, 20}, {20, 10}, false}, false);
  EXPECT_TRUE(close(run(x, other, {.compute = Compute::f64, .dtype = Dtype::c128}, context), want,
                    Dtype::c128));
  EXPECT_TRUE(close(run(x, other, {.compute = Compute::f64}, context), want, Dtype::c128));
  EXPECT_TRUE(close(run(x, other, {.compute = Compute::tf32}, context), want, Dtype::c64, 0x1p-8));
}

DEVICE_TEST(MatmulTest, MixedDtypesArePromotedAsInNumPy) {
  const Context context = kit::context(device());
  struct Case {
    Dtype x, other, common, sum;
  };
  const Case cases[] = {
      {Dtype::u8, Dtype::f32, Dtype::f32, Dtype::f32},
      {Dtype::i16, Dtype::f32, Dtype::f32, Dtype::f32},
      {Dtype::i32, Dtype::f32, Dtype::f64, Dtype::f64},
      {Dtype::f32, Dtype::u64, Dtype::f64, Dtype::f64},
      {Dtype::u8, Dtype::f16, Dtype::f16, Dtype::f32},
      {Dtype::i8, Dtype::bf16, Dtype::bf16, Dtype::f32},
      {Dtype::u16, Dtype::f16, Dtype::f32, Dtype::f32},
      {Dtype::i64, Dtype::f16, Dtype::f64, Dtype::f64},
      {Dtype::f16, Dtype::bf16, Dtype::f32, Dtype::f32},
      {Dtype::f16, Dtype::f32, Dtype::f32, Dtype::f32},
      {Dtype::f32, Dtype::f64, Dtype::f64, Dtype::f64},
      {Dtype::c64, Dtype::f32, Dtype::c64, Dtype::c64},
      {Dtype::f64, Dtype::c64, Dtype::c128, Dtype::c128},
      {Dtype::c64, Dtype::i32, Dtype::c128, Dtype::c128},
      {Dtype::u8, Dtype::c64, Dtype::c64, Dtype::c64},
      {Dtype::c64, Dtype::c128, Dtype::c128, Dtype::c128},
      {Dtype::u8, Dtype::u16, Dtype::u16, Dtype::u16},
      {Dtype::i8, Dtype::i64, Dtype::i64, Dtype::i64},
      {Dtype::u8, Dtype::i8, Dtype::i16, Dtype::i16},
      {Dtype::i32, Dtype::u16, Dtype::i32, Dtype::i32},
      {Dtype::u32, Dtype::i8, Dtype::i64, Dtype::i64},
  };
  for (const Case& c : cases) {
    const Array x = kit::random({6, 20}, c.x, 1, 0, 9),
                other = kit::random({20, 10}, c.other, 2, 0, 9);
    const Array got = run(x, other, {}, context);
    EXPECT_EQ(got.dtype(), c.common) << name_of(c.x) << " " << name_of(c.other);
    EXPECT_TRUE(
        close(got, product(rounded(x, {}), rounded(other, {}), {{6, 20}, {20, 10}, false}, false),
              is_integer(c.sum) ? Dtype::f64 : c.sum))
        << name_of(c.x) << " " << name_of(c.other);
  }
}

DEVICE_TEST(MatmulTest, ConstantOther) {
  const Context context = kit::context(device());
  for (const Dtype dtype : {Dtype::f32, Dtype::f64, Dtype::f16, Dtype::i32}) {
    const Array x = kit::random({3, 5, 7}, Dtype::f32, 1), other = kit::random({7, 4}, dtype, 2);
    const Array given = kit::to_device(x, context);
    for (const Compute compute : {Compute::f32, Compute::bf16}) {
      if (compute == Compute::bf16 && (dtype == Dtype::f64 || dtype == Dtype::i32)) continue;
      const Array want = run(x, other, {.compute = compute}, context);
      for (const kit::Layout layout : kit::layouts()) {
        const Array laid = kit::with_layout(other, layout);
        for (const Array& constant : {laid, kit::to_device(laid, context)}) {
          const Array got = matmul(given, {.other = constant, .compute = compute}, context);
          EXPECT_TRUE(kit::same_bits(kit::to_host(got, context), want)) << name_of(dtype);
        }
      }
    }
  }
  const Array x = kit::random({2, 3}, Dtype::f32, 1), square = kit::random({5, 3}, Dtype::f32, 2);
  EXPECT_TRUE(kit::same_bits(
      kit::to_host(
          matmul(kit::to_device(x, context), {.other = square, .transpose_other = true}, context),
          context),
      run(x, square, {.transpose_other = true}, context)));
}

/// f32 means f32: at TF32's precision the first element would be 6.175251.
DEVICE_TEST(MatmulTest, SinglePrecisionByDefault) {
  const Array a =
      Array::from({2, 2}, std::vector<float>{1.1111111F, 2.2222222F, 3.3333333F, 4.4444444F});
  const Array got = run(a, a, {.transpose_other = true}, kit::context(device()));
  EXPECT_TRUE(
      kit::near(got, std::vector<double>{6.1728387, 13.580246, 13.580246, 30.864195}, 2e-7));
}

DEVICE_TEST(MatmulTest, HalfSumsDoNotOverflowOrStick) {
  const Context context = kit::context(device());
  // 4096 ones stick at 2048 when summed in f16, at 256 in bf16.
  const auto ones = [](const Dims& shape, Dtype dtype) {
    return kit::generate(shape, dtype, [](std::int64_t) { return 1; });
  };
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16}) {
    const Array got = run(ones({3, 4096}, dtype), ones({4096, 5}, dtype), {}, context);
    EXPECT_TRUE(kit::near(got, std::vector<double>(15, 4096), 0)) << name_of(dtype);
  }
  // The sum leaves the range of f16 on the way and comes back.
  const Array large = Array::from({1, 4}, std::vector<float>{60000, 60000, -60000, -59000});
  const Array got =
      run(large, ones({4, 1}, Dtype::f32), {.compute = Compute::f16, .dtype = Dtype::f16}, context);
  EXPECT_TRUE(kit::near(got, std::vector<double>{992}, 0));  // f16 has 59008 for 59000
}

DEVICE_TEST(MatmulTest, IntegersWrap) {
  const Context context = kit::context(device());
  const Array got = run(Array::from({1, 1}, std::vector<std::uint8_t>{200}),
                        Array::from({1, 1}, std::vector<std::uint8_t>{2}), {}, context);
  EXPECT_TRUE(kit::same_bits(got, Array::from({1, 1}, std::vector<std::uint8_t>{144})));
  const std::int64_t large = (std::int64_t{1} << 53) + 1;  // the first integer that f64 has not
  EXPECT_TRUE(kit::same_bits(run(Array::from({1, 1}, std::vector<std::int64_t>{large}),
                                 Array::from({1, 1}, std::vector<std::int64_t>{1}), {}, context),
                             Array::from({1, 1}, std::vector<std::int64_t>{large})));
}

DEVICE_TEST(MatmulTest, ZeroTimesNanIsNan) {
  const Array zeros = kit::generate({70, 80}, Dtype::f32, [](std::int64_t) { return 0; });
  const Array nans = kit::generate({80, 90}, Dtype::f32, [](std::int64_t) { return std::nan(""); });
  for (const Compute compute : {Compute::f32, Compute::bf16}) {
    const Matmul settings{.compute = compute};
    for (const double value : kit::values(run(zeros, nans, settings, kit::context(device()))))
      ASSERT_TRUE(std::isnan(value));
    // Nothing stands beside the zeros: K = 80 is no whole number of tiles.
    for (const double value :
         kit::values(run(nans.reshape({90, 80}),
                         kit::generate({80, 1}, Dtype::f32, [](std::int64_t) { return 0; }),
                         settings, kit::context(device()))))
      ASSERT_TRUE(std::isnan(value));
  }
}

/// More than a block of each kind, on the CPU's way of bf16: rows, columns, inner elements, products.
TEST(Matmul, LargeProductsOfBf16AreExactForWholeNumbers) {
  const Context context = kit::context(Device::cpu());
  const auto whole = [](const Dims& shape, std::int64_t seed) {
    return kit::generate(shape, Dtype::f32, [seed](std::int64_t i) {
      return static_cast<double>((static_cast<std::uint64_t>(i + seed) * 2654435761U >> 9) % 9) - 4;
    });
  };
  const std::int64_t m = 300, k = 2100, n = 1100;
  const Array x = whole({2, m, k}, 1), other = whole({2, k, n}, 7);
  const Array got =
      kit::to_host(matmul(x, {.other = other, .compute = Compute::bf16}, context), context);
  for (std::int64_t i = 0; i < 2 * m * n; i += 997) {
    const std::int64_t row = i / n, column = i % n, matrix = row / m;
    double want = 0;
    for (std::int64_t l = 0; l < k; ++l)
      want += double{x.as<float>()[row * k + l]} *
              double{other.as<float>()[(matrix * k + l) * n + column]};
    ASSERT_EQ(got.as<float>()[i], want) << i;
  }
}

/// More products than a grid's third axis has blocks.
DEVICE_TEST(MatmulTest, SeventyThousandSmallProducts) {
  const Context context = kit::context(device());
  for (const Dims& other_shape : {Dims{70000, 3, 2}, Dims{1, 3, 2}}) {
    const Array x = kit::random({70000, 2, 3}, Dtype::f32, 1),
                other = kit::random(other_shape, Dtype::f32, 2);
    EXPECT_TRUE(close(run(x, other, {}, context),
                      product(kit::complex_values(x), kit::complex_values(other),
                              {x.shape(), other_shape, false}, false),
                      Dtype::f32));
  }
}

TEST(Matmul, TheSameBitsAtEveryThreadCount) {
  const Array x = kit::random({700, 300}, Dtype::f32, 1),
              other = kit::random({300, 500}, Dtype::f32, 2);
  const Context one = Context::create(Device::cpu(), 1);
  const Context four = Context::create(Device::cpu(), 4);
  for (const Compute compute : {Compute::f32, Compute::bf16}) {
    const Matmul settings{.compute = compute};
    EXPECT_TRUE(kit::same_bits(kit::to_host(matmul(x, other, settings, one), one),
                               kit::to_host(matmul(x, other, settings, four), four)));
  }
}

TEST(Matmul, LeadingAxesMergeIntoOneProductWhereTheyCan) {
  const auto resolved = [](const Dims& x, const Dims& other) {
    const ArraySpec inputs[] = {{Dtype::f32, x}, {Dtype::f32, other}};
    return resolve(Matmul{}, inputs);
  };
  const Product rows = resolved({4, 3, 5, 7}, {7, 2});
  EXPECT_EQ(rows.m, 60);
  EXPECT_EQ(rows.batch, Dims{});
  const Product one = resolved({4, 3, 5, 7}, {4, 3, 7, 2});
  EXPECT_EQ(one.batch, Dims{12});
  EXPECT_EQ(one.x_strides, Dims{35});
  EXPECT_EQ(one.other_strides, Dims{14});
  const Product broadcast = resolved({4, 1, 5, 7}, {3, 7, 2});
  EXPECT_EQ(broadcast.batch, (Dims{4, 3}));
  EXPECT_EQ(broadcast.x_strides, (Dims{35, 0}));
  EXPECT_EQ(broadcast.other_strides, (Dims{0, 14}));
}

TEST(Matmul, SaysWhenItMixesSamples) {
  const OpDef& def = find_op("matmul").def;
  const auto mixes = [&](const Dims& x, const Dims& other, bool constant) {
    Matmul settings;
    if (constant) settings.other = kit::random(other, Dtype::f32, 1);
    std::vector<ArraySpec> inputs{{Dtype::f32, x}};
    if (!constant) inputs.push_back({Dtype::f32, other});
    return def.mixes_samples(&settings, inputs);
  };
  EXPECT_FALSE(mixes({8, 3}, {3, 4}, true));
  EXPECT_FALSE(mixes({8, 2, 3}, {3, 4}, true));
  EXPECT_FALSE(mixes({8, 2, 3}, {8, 3, 4}, false));
  EXPECT_TRUE(mixes({8}, {8, 4}, true));
  EXPECT_TRUE(mixes({8, 3}, {3, 4}, false));
  EXPECT_TRUE(mixes({8, 2, 3}, {3, 4}, false));
}

TEST(Matmul, Errors) {
  const Context context = kit::context(Device::cpu());
  const auto array = [](const Dims& shape, Dtype dtype = Dtype::f32) {
    return kit::random(shape, dtype, 1);
  };
  const auto product_of = [&](const Array& x, const Array& other, const Matmul& settings = {}) {
    matmul(x, other, settings, context);
  };
  EXPECT_ERROR(product_of(array({2, 3}), array({4, 5})), invalid,
               "matmul: `x` has shape (2, 3) and `other` (4, 5): the last axis of `x`, 3, must be "
               "as long as axis 0 of "
               "`other`, 4.");
  EXPECT_ERROR(product_of(array({2, 3}), array({4, 5}), {.transpose_other = true}), invalid,
               "matmul: `x` has shape (2, 3) and `other` (4, 5): the last axis of `x`, 3, must be "
               "as long as axis 1 of "
               "`other`, 5.");
  EXPECT_ERROR(product_of(array({2, 3, 4}), array({5, 4, 6})), invalid,
               "matmul: `x` has shape (2, 3, 4) and `other` (5, 4, 6): the leading axes (2,) and "
               "(5,) do not broadcast.");
  EXPECT_ERROR(product_of(array({}), array({3})), invalid,
               "matmul: `x` is a scalar, shape (); it needs an axis to sum over. Use `scale` to "
               "multiply by a number.");
  EXPECT_ERROR(product_of(array({3}), array({})), invalid,
               "matmul: `other` is a scalar, shape (); it needs an axis to sum over. Use `scale` "
               "to multiply by a number.");
  EXPECT_ERROR(
      product_of(array({3}), array({3}), {.transpose_other = true}), invalid,
      "matmul: `transpose_other` is true, but `other` has shape (3,); it needs two axes to swap.");
  EXPECT_ERROR(
      product_of(array({3}), array({3}), {.other = array({3})}), invalid,
      "matmul: `other` is given twice, in the settings and as the second input; give one of them.");
  EXPECT_ERROR(matmul(array({3}), {}, context), invalid,
               "matmul: `other` is missing; give a matrix in the settings or name a second input.");
  EXPECT_ERROR(product_of(array({3}, Dtype::boolean), array({3})), unsupported,
               "matmul: `x` has dtype bool; supported: integers, f16, bf16, f32, f64, c64, c128. "
               "Add a `cast` stage before it.");
  EXPECT_ERROR(product_of(array({3}, Dtype::u64), array({3}, Dtype::i32)), unsupported,
               "matmul: i32 and u64 have no common integer type; products of integers are exact. "
               "Cast one of them before.");
  EXPECT_ERROR(product_of(array({3}, Dtype::u8), array({3}, Dtype::u8), {.compute = Compute::bf16}),
               invalid,
               "matmul: `compute` is bf16, but the operands are integers, u8 and u8, whose product "
               "is exact. Leave `compute` "
               "out, or cast them to a float before.");
  EXPECT_ERROR(product_of(array({3}, Dtype::u8), array({3}, Dtype::i8), {.dtype = Dtype::f32}),
               invalid,
               "matmul: `dtype` is f32, but the product of u8 and i8 is i16. Leave `dtype` out, "
               "and cast before or after.");
  EXPECT_ERROR(product_of(array({3}), array({3}), {.dtype = Dtype::i32}), invalid,
               "matmul: `dtype` is i32; it must be f16, bf16, f32 or f64.");
  EXPECT_ERROR(product_of(array({3}, Dtype::c64), array({3}), {.dtype = Dtype::f32}), invalid,
               "matmul: `dtype` is f32, but the product is complex; it must be c64 or c128.");
  EXPECT_ERROR(product_of(array({3}, Dtype::f64), array({3}), {.compute = Compute::tf32}), invalid,
               "matmul: `compute` is tf32, but the product is f64; it must be f64 or left out. "
               "Cast the operands to f32 "
               "before for less.");
  EXPECT_ERROR(product_of(array({3}, Dtype::c64), array({3}), {.compute = Compute::bf16}), invalid,
               "matmul: `compute` is bf16, but the product is c64; it must be f32, tf32 or f64.");
  EXPECT_ERROR(product_of(array({3}, Dtype::c128), array({3}), {.compute = Compute::tf32}), invalid,
               "matmul: `compute` is tf32, but the product is c128; it must be f64 or left out.");
}

}  // namespace
}  // namespace forebay
