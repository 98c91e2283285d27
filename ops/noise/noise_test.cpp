#include <forebay/ops/noise/noise.h>

#include <forebay/ops/expr/run_test.h>
#include <forebay/ops/random_test.h>

namespace forebay {
namespace {

using test::draw_of;

constexpr int kDraws = 1;  // in every run for ever

class NoiseTest : public kit::DeviceTest {};

Array run(const Array& host, const Noise& settings, const Draw& draw, const Context& context) {
  return kit::to_host(noise(kit::to_device(host, context), settings, draw, context), context);
}

/// The standard noise of the samples `ids`, word by word; as `work` has it.
Array standard(const Dims& shape, const std::vector<std::int64_t>& ids, NoiseKind kind, Dtype work,
               std::int64_t epoch, std::uint64_t seed, int stream) {
  const std::int64_t elements = count_of(shape) / shape[0];
  const bool wide = work == Dtype::f64;
  std::vector<std::uint32_t> words;
  std::vector<std::uint64_t> pairs;
  for (const std::int64_t id : ids) {
    for (std::int64_t i = 0; i < elements; ++i) {
      const auto at = [&](std::int64_t word) {
        return test::word_of(kDraws, stream, seed, epoch, id, word);
      };
      if (wide) {
        pairs.push_back(std::uint64_t{at(2 * i)} << 32 | at(2 * i + 1));
      } else {
        words.push_back(at(i));
      }
    }
  }
  const Array bits =
      wide ? Array::from<std::uint64_t>(shape, pairs) : Array::from<std::uint32_t>(shape, words);
  const auto opcode = kind == NoiseKind::gaussian ? expr::Opcode::normal : expr::Opcode::uniform;
  return expr::run(unary(opcode, expr::leaf_like(0, bits)), {bits}, kit::context(Device::cpu()));
}

DEVICE_TEST(NoiseTest, AddsWhatItsWordsSay) {
  const Context context = kit::context(device());
  const std::vector<std::int64_t> ids = {5, 0, (std::int64_t{1} << 40) + 7, 5};
  for (const Dims& shape : {Dims{4, 5}, Dims{4}, Dims{4, 3, 7, 2}, Dims{4, 1030}}) {
    for (const NoiseKind kind : {NoiseKind::gaussian, NoiseKind::uniform}) {
      for (const Dtype dtype : {Dtype::f32, Dtype::f64}) {
        const Array x = kit::random(shape, dtype, 1);
        const Array got =
            run(x, {.distribution = kind, .stream = 9}, draw_of(ids, context, 11, 99), context);
        const Array z = standard(shape, ids, kind, dtype, 11, 99, 9);
        const Array want = expr::run(expr::leaf_like(0, x) + expr::leaf_like(1, z), {x, z},
                                     kit::context(Device::cpu()));
        EXPECT_TRUE(kit::same_bits(got, want)) << testing::PrintToString(shape);
      }
    }
  }
}

DEVICE_TEST(NoiseTest, ScalesShiftsAndRoundsOnce) {
  const Context context = kit::context(device());
  const Draw draw = draw_of(2, context);
  const Dims shape{2, 100};
  const Array z = standard(shape, {0, 1}, NoiseKind::gaussian, Dtype::f32, 3, draw.seed, 0);
  const Array u = standard(shape, {0, 1}, NoiseKind::uniform, Dtype::f32, 3, draw.seed, 0);
  for (const Dtype dtype : {Dtype::u8, Dtype::boolean, Dtype::f16, Dtype::bf16, Dtype::f32}) {
    const Array x = kit::random(shape, dtype, 1, 0, 99);
    const bool half = dtype == Dtype::f16 || dtype == Dtype::bf16;
    std::vector<float> normal, uniform;
    for (std::int64_t i = 0; i < x.count(); ++i) {
      const auto value = static_cast<float>(kit::value(x.view(), i));
      normal.push_back(value + (z.as<float>()[i] * 0.3F + 2.0F));
      uniform.push_back(value + (u.as<float>()[i] * 6.0F + -2.5F));
    }
    const Context cpu = kit::context(Device::cpu());
    const auto rounded = [&](const std::vector<float>& values) {
      const Array host = Array::from<float>(shape, values);
      return expr::run(cast(expr::leaf_like(0, host), half ? dtype : Dtype::f32), {host}, cpu);
    };
    EXPECT_TRUE(kit::same_bits(run(x, {.mean = 2, .std = 0.3}, draw, context), rounded(normal)))
        << name_of(dtype);
    const Noise even{.distribution = NoiseKind::uniform, .low = -2.5, .high = 3.5};
    EXPECT_TRUE(kit::same_bits(run(x, even, draw, context), rounded(uniform))) << name_of(dtype);
  }
  const Array x = kit::random(shape, Dtype::f32, 1);
  EXPECT_EQ(run(x, {.dtype = Dtype::f64}, draw, context).dtype(), Dtype::f64);
  EXPECT_TRUE(kit::same_bits(run(x, {.std = 0}, draw, context), x));
}

DEVICE_TEST(NoiseTest, BelongsToSamplesNotToRows) {
  const Context context = kit::context(device());
  const Array x = kit::generate({6, 40}, Dtype::f32, [](std::int64_t) { return 0; });
  const Array all = run(x, {}, draw_of(6, context), context);
  const std::vector<std::int64_t> order = {4, 1, 1, 5};
  const Array some = run(x.slice(0, 0, 4), {}, draw_of(order, context), context);
  for (std::int64_t row = 0; row < 4; ++row) {
    const std::int64_t sample = order[static_cast<std::size_t>(row)];
    EXPECT_TRUE(kit::same_bits(some.slice(0, row, row + 1), all.slice(0, sample, sample + 1)));
  }
  for (const kit::Layout layout : kit::layouts())
    EXPECT_TRUE(
        kit::same_bits(run(kit::with_layout(x, layout), {}, draw_of(6, context), context), all));
}

/// What is drawn for `count` samples of `elements` each.
std::vector<double> drawn(const Noise& settings, std::int64_t count, std::int64_t elements,
                          std::int64_t epoch, std::uint64_t seed, const Context& context,
                          Dtype dtype = Dtype::f32) {
  const Array x = kit::generate({count, elements}, dtype, [](std::int64_t) { return 0; });
  return kit::values(run(x, settings, draw_of(count, context, 0, epoch, seed), context));
}

DEVICE_TEST(NoiseTest, IsDistributedAsItSays) {
  const Context context = kit::context(device());
  const double n = 500 * 400;
  for (const Dtype dtype : {Dtype::f32, Dtype::f64}) {
    for (const std::uint64_t seed : {0, 1, 2}) {
      const auto z = drawn({}, 500, 400, 0, seed, context, dtype);
      const test::Moments m = test::moments_of(z);
      EXPECT_NEAR(m.mean, 0, 5 / std::sqrt(n));
      EXPECT_NEAR(m.variance, 1, 5 * std::sqrt(2 / n));
      EXPECT_NEAR(m.skewness, 0, 5 * std::sqrt(6 / n));
      EXPECT_NEAR(m.kurtosis, 3, 5 * std::sqrt(24 / n));
      EXPECT_LT(test::distance_of(z, [](double x) { return std::erfc(-x / std::sqrt(2.0)) / 2; }),
                test::kMostDistance);
      const auto u = drawn({.distribution = NoiseKind::uniform}, 500, 400, 0, seed, context, dtype);
      EXPECT_NEAR(test::moments_of(u).mean, 0.5, 5 * std::sqrt(1 / 12.0 / n));
      EXPECT_NEAR(test::moments_of(u).variance, 1 / 12.0, 5 * std::sqrt(1 / 180.0 / n));
      EXPECT_LT(test::distance_of(u, [](double x) { return x; }), test::kMostDistance);
      EXPECT_GE(*std::min_element(u.begin(), u.end()), 0);
      EXPECT_LT(*std::max_element(u.begin(), u.end()), 1);
    }
  }
}

DEVICE_TEST(NoiseTest, HasNothingInCommonBetweenElementsSamplesEpochsSeedsAndStages) {
  const Context context = kit::context(device());
  const auto z = drawn({}, 500, 400, 0, 7, context);
  const auto uncorrelated = [&](const std::vector<double>& other, const char* what) {
    EXPECT_LT(std::abs(test::correlation_of(z, other)), test::kMostCorrelation) << what;
    EXPECT_NE(z, other) << what;
  };
  for (const std::int64_t lag : {1, 2, 3, 4, 5, 8, 64, 400, 800}) {  // 400: the next sample
    const std::vector<double> first(z.begin(), z.end() - lag), second(z.begin() + lag, z.end());
    EXPECT_LT(std::abs(test::correlation_of(first, second)), test::kMostCorrelation) << lag;
  }
  uncorrelated(drawn({}, 500, 400, 1, 7, context), "epoch");
  uncorrelated(drawn({}, 500, 400, 0, 8, context), "seed");
  uncorrelated(drawn({}, 500, 400, 0, 7 + (std::uint64_t{1} << 32), context), "seed");
  uncorrelated(drawn({.stream = 1}, 500, 400, 0, 7, context), "stream");
}

TEST(NoiseErrors, SayWhatIsAllowed) {
  const Context context = kit::context(Device::cpu());
  const Array x = kit::random({3, 4}, Dtype::f32, 1);
  const Draw draw = draw_of(3, context);
  EXPECT_ERROR(noise(kit::random({3}, Dtype::c64, 1), {}, draw, context), unsupported,
               "noise: `x` has dtype c64; supported: bool, integers, f16, bf16, f32, f64. Add an "
               "`abs` stage before it.");
  EXPECT_ERROR(noise(x, {.dtype = Dtype::u8}, draw, context), invalid,
               "noise: `dtype` is u8; it must be f16, bf16, f32 or f64.");
  EXPECT_ERROR(noise(x, {.std = -1}, draw, context), invalid,
               "noise: `std` is -1; it must be at least 0.");
  EXPECT_ERROR(noise(x, {.stream = 256}, draw, context), invalid,
               "noise: `stream` is 256; it must be between 0 and 255.");
  EXPECT_ERROR(noise(x, {.low = 1}, draw, context), invalid,
               "noise: `low` is for uniform noise, but `distribution` is gaussian; leave it out.");
  EXPECT_ERROR(noise(x, {.distribution = NoiseKind::uniform, .std = 1}, draw, context), invalid,
               "noise: `std` is for gaussian noise, but `distribution` is uniform; leave it out.");
  EXPECT_ERROR(noise(x, {.distribution = NoiseKind::uniform, .low = 2}, draw, context), invalid,
               "noise: `low` is 2.0 and `high` is 1.0; low must not exceed high.");
  EXPECT_ERROR(noise(kit::random({}, Dtype::f32, 1), {}, draw, context), invalid,
               "noise: `x` is a scalar, shape (); axis 0 of a random op's input runs over the "
               "samples.");
  EXPECT_ERROR(noise(x, {}, draw_of(2, context), context), invalid,
               "noise: `x` has shape (3, 4), but there are 2 samples; axis 0 of a random op's "
               "input runs over the samples.");
  EXPECT_ERROR(noise(x, {}, {.sample_ids = kit::random({3}, Dtype::i32, 1)}, context), invalid,
               "noise: the sample ids are i32 (3,); they must be i64 (n,).");
  EXPECT_ERROR(run_single("noise", Noise{}, {x}, context), invalid,
               "noise: it is random; give the Draw that says of which samples and epoch.");
  const Op op = Op::with(find_op("noise"), Noise{});
  const ArraySpec large{Dtype::f64, {2, (std::int64_t{1} << 33) + 1}};
  EXPECT_ERROR(op.infer({&large, 1}), unsupported,
               "noise: a sample of `x`, shape (2, 8589934593), has 8589934593 elements; it has "
               "random bits for 8589934592.");
}

}  // namespace
}  // namespace forebay
