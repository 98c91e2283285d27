#include "kit/kit.h"
#include "kit/oracle.h"

#include <map>

#include <forebay/array/require.h>
#include <forebay/ops/tally/bins.h>
#include <forebay/ops/tally/tally.h>

namespace forebay {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// All bins of a dtype by the least magnitude that each says that it holds.
class AllBins {
 public:
  AllBins(Dtype dtype, std::optional<std::int64_t> bits) : bins_(dtype, bits) {
    using Kind = TallyBins::Bin::Kind;
    for (std::int64_t i = 0; i < bins_.count(); ++i) {
      const TallyBins::Bin bin = bins_.at(i);
      if (bin.kind == Kind::nan) {
        // f16 and bf16 have a bin for each NaN; these tests have one pattern of it.
        if (dtype == Dtype::f32 || dtype == Dtype::f64 || i == 0x7fff) nan_ = i;
      } else if (bin.kind == Kind::infinite) {
        by_magnitude_[{bin.negative, INFINITY}] = i;
      } else if (bin.width > 0) {
        const auto base = std::ldexp(static_cast<long double>(bin.base), bin.exponent);
        EXPECT_TRUE(by_magnitude_.try_emplace({bin.negative, base}, i).second) << "bins overlap";
      }
    }
  }
  const TallyBins& bins() const { return bins_; }

  /// The bin of x and what is behind its bits.
  std::pair<std::int64_t, std::uint64_t> find(long double x, bool negative) const {
    if (std::isnan(x)) return {nan_, 0};
    auto found = by_magnitude_.upper_bound({negative, std::fabs(x)});
    if (found == by_magnitude_.begin() || (--found)->first.first != negative) return {-1, 0};
    if (std::isinf(x)) return {found->second, 0};
    const TallyBins::Bin bin = bins_.at(found->second);
    const long double low =
        std::ldexp(std::fabs(x), -bin.exponent) - static_cast<long double>(bin.base);
    if (!(low < static_cast<long double>(bin.width))) return {-1, 0};
    return {found->second, static_cast<std::uint64_t>(low)};
  }

 private:
  TallyBins bins_;
  std::map<std::pair<bool, long double>, std::int64_t> by_magnitude_;
  std::int64_t nan_ = -1;
};

/// The table of a host array: a search for each value, and digits cut off with a 128-bit square.
std::vector<std::int64_t> oracle(const Array& x, const AllBins& all) {
  const TallyBins& bins = all.bins();
  std::vector<std::int64_t> table(static_cast<std::size_t>(bins.count() * bins.words()));
  dispatch(kit::RealsAndBool{}, x.dtype(), "test", "x", [&]<class T>(Type<T>) {
    for (std::int64_t i = 0; i < x.count(); ++i) {
      const long double value = kit::exact(x.as<T>()[i]);
      const auto place = all.find(value, std::signbit(value));
      ASSERT_GE(place.first, 0) << "no bin holds " << static_cast<double>(value);
      std::int64_t* words = table.data() + place.first * bins.words();
      *words++ += 1;
      std::uint64_t low = place.second;
      for (int digit = 0; digit < bins.low_digits(); ++digit, low >>= 32)
        *words++ += static_cast<std::int64_t>(low & 0xffffffff);
      auto square = static_cast<unsigned __int128>(place.second) * place.second;
      for (int digit = 0; digit < bins.square_digits(); ++digit, square >>= 32)
        *words++ += static_cast<std::int64_t>(square & 0xffffffff);
    }
  });
  return table;
}

struct Extremes {
  double least, greatest;
};
Extremes extremes_of(const Array& x) {
  Extremes extremes{INFINITY, -INFINITY};
  for (const double value : kit::values(x)) {
    if (!std::isfinite(value)) continue;
    extremes.least = std::min(extremes.least, value);
    extremes.greatest = std::max(extremes.greatest, value);
  }
  return extremes;
}

class TallyTest : public kit::DeviceTest {
 protected:
  TallyResult run(const Array& host, const Tally& settings = {}) {
    const Context context = kit::context(device());
    const TallyResult got = tally(kit::to_device(host, context), settings, context);
    return {kit::to_host(got.table, context), kit::to_host(got.extremes, context)};
  }
  void expect_oracle(const Array& x, std::optional<std::int64_t> bits = {}) {
    const AllBins all(x.dtype(), bits);
    const TallyResult got = run(x, {.bits = bits});
    const Array want = Array::from<std::int64_t>(got.table.shape(), oracle(x, all));
    EXPECT_TRUE(kit::same_bits(got.table, want)) << name_of(x.dtype()) << ' ' << x.count();
    const Extremes extremes = extremes_of(x);
    const auto* orders = got.extremes.as<std::uint64_t>();
    if (extremes.least <= extremes.greatest) {
      EXPECT_EQ(all.bins().value_of_order(orders[0]), extremes.greatest);
      EXPECT_EQ(all.bins().value_of_order(~orders[1]), extremes.least);
    } else {
      EXPECT_EQ(orders[0], 0U);
      EXPECT_EQ(orders[1], 0U);
    }
  }
};

DEVICE_TEST(TallyTest, EveryValueIsInTheBinThatHoldsIt) {
  for (const Dtype dtype : kAllDtypes) {
    if (is_complex(dtype)) continue;
    dispatch(kit::RealsAndBool{}, dtype, "test", "x", [&]<class T>(Type<T>) {
      const Array values = kit::array_of(kit::edge_values<T>());
      expect_oracle(values);
      if (sizeof(T) <= 2) return;
      for (const std::int64_t bits : {0, 5})
        expect_oracle(values, bits);
    });
  }
  expect_oracle(kit::array_of(kit::edge_values<float>()), 12);
}

DEVICE_TEST(TallyTest, SumsManyValuesExactly) {
  for (const Dtype dtype : kAllDtypes) {
    if (is_complex(dtype)) continue;
    // Bins that many lanes of a warp meet in, and bins that few do.
    const double high = is_integer(dtype) ? 100 : 1;
    expect_oracle(kit::random({300, 257}, dtype, 3, is_unsigned(dtype) ? 0 : -high, high), 2);
    expect_oracle(kit::generate({3000}, dtype, [](std::int64_t i) { return i % 5 == 0 ? 0 : 1; }));
  }
  const Array wide = kit::generate({4001}, Dtype::f64, [](std::int64_t i) {
    return std::ldexp(1 + static_cast<double>(i) / 4001, static_cast<int>(i % 2000) - 1000);
  });
  expect_oracle(wide);
}

/// Enough values for a GPU to add those of a window of bins up on chip: inside of it, far from it, and all in one bin.
DEVICE_TEST(TallyTest, SumsLongOnesExactly) {
  constexpr std::int64_t kCount = 120001;
  for (const Dtype dtype : {Dtype::f16, Dtype::f32, Dtype::f64, Dtype::i16, Dtype::u16, Dtype::i32,
                            Dtype::u32, Dtype::i64}) {
    const double high = is_integer(dtype) ? 30000 : 3;
    expect_oracle(kit::random({kCount}, dtype, 7, is_unsigned(dtype) ? 0 : -high, high));
  }
  expect_oracle(kit::generate({kCount}, Dtype::f32, [](std::int64_t) { return 1.1; }));
  expect_oracle(kit::generate({kCount}, Dtype::f32, [](std::int64_t i) {
    return i % 7 == 0 ? kNaN : std::ldexp(i % 2 == 0 ? 1.3 : -1.7, static_cast<int>(i % 200) - 100);
  }));
  const Context host = kit::context(Device::cpu());
  for (const auto& [shape, layout] : {std::pair{Dims{40, 50, 60, 3}, Layout::nhwc},
                                      {Dims{40, 3, 50, 60}, Layout::nchw},
                                      {Dims{70000, 40}, Layout::nc}}) {
    const Array x = kit::random(shape, Dtype::f32, 8);
    const Tally settings{.bits = 3, .layout = layout};
    const TallyResult got = run(x, settings), want = tally(x, settings, host);
    host.stream.synchronize();
    EXPECT_TRUE(kit::same_bits(got.table, want.table)) << to_string(shape);
    EXPECT_TRUE(kit::same_bits(got.extremes, want.extremes)) << to_string(shape);
  }
}

DEVICE_TEST(TallyTest, HasATableForEachIndexOfTheAxesThatAreKept) {
  const Tally cases[] = {{.layout = Layout::nhwc}, {.layout = Layout::nchw},
                         {.axes = {{0, 1, 3}}},    {.axes = {{-1}}, .per_sample = true},
                         {.per_sample = true},     {.axes = std::vector<std::int64_t>{1, 2}}};
  for (const Dtype dtype : {Dtype::u8, Dtype::f32, Dtype::i64}) {
    const Array x = kit::random({4, 5, 20, 3}, dtype, 4, 0, 50);
    for (Tally settings : cases) {
      if (size_of(dtype) > 2) settings.bits = 3;
      const TallyResult got = run(x, settings);
      const AxisSet counted = tally_detail::counted_axes(settings, x.shape());
      const Slices slices = slices_of(x.shape(), counted);
      const std::int64_t words = got.table.count() / slices.count();
      for (std::int64_t slice = 0; slice < slices.count(); ++slice) {
        Array part = x;
        std::int64_t rest = slice;
        for (int axis = 3; axis >= 0; --axis) {
          if (has_axis(counted, axis)) continue;
          const std::int64_t index = rest % x.shape()[axis];
          rest /= x.shape()[axis];
          part = part.slice(axis, index, index + 1);
        }
        const TallyResult want = run(part, {.bits = settings.bits});
        const auto of = [&](const Array& all, std::int64_t size) {
          return all.reshape({slices.count(), size}).slice(0, slice, slice + 1).reshape({size});
        };
        ASSERT_TRUE(kit::same_bits(of(got.table, words), want.table.reshape({words})))
            << name_of(dtype) << ' ' << slice;
        ASSERT_TRUE(kit::same_bits(of(got.extremes, 2), want.extremes)) << slice;
      }
    }
  }
}

DEVICE_TEST(TallyTest, OfPartsAddsUpToThatOfTheWhole) {
  for (const Dtype dtype : {Dtype::u8, Dtype::i16, Dtype::f32, Dtype::f64}) {
    const Array x = kit::random({70000, 9}, dtype, 5, -90, 90);
    const TallyResult whole = run(x);
    std::vector<std::int64_t> sum(static_cast<std::size_t>(whole.table.count()));
    std::uint64_t extremes[2] = {};
    for (const auto& [begin, end] : {std::pair{0, 1}, {1, 600}, {600, 70000}}) {
      const TallyResult part = run(x.slice(0, begin, end));
      for (std::size_t i = 0; i < sum.size(); ++i)
        sum[i] += part.table.as<std::int64_t>()[i];
      for (int i = 0; i < 2; ++i)
        extremes[i] = std::max(extremes[i], part.extremes.as<std::uint64_t>()[i]);
    }
    EXPECT_TRUE(kit::same_bits(whole.table, Array::from(whole.table.shape(), sum)))
        << name_of(dtype);
    EXPECT_EQ(whole.extremes.as<std::uint64_t>()[0], extremes[0]);
    EXPECT_EQ(whole.extremes.as<std::uint64_t>()[1], extremes[1]);
  }
}

DEVICE_TEST(TallyTest, OfNothingIsZeros) {
  for (const Dims& shape : {Dims{0}, Dims{0, 3}, Dims{3, 0}}) {
    const TallyResult got = run(kit::random(shape, Dtype::f32, 1), {.bits = 1, .axes = {{0}}});
    for (const double value : kit::values(got.table))
      EXPECT_EQ(value, 0);
    for (const double value : kit::values(got.extremes))
      EXPECT_EQ(value, 0);
  }
  expect_oracle(kit::array_of<float>({static_cast<float>(kNaN), INFINITY, -INFINITY}));
  expect_oracle(kit::random({}, Dtype::f32, 9));
}

TEST(TallyCpu, HasTheSameBitsOnAnyNumberOfThreads) {
  const Array x = kit::random({3000, 301}, Dtype::f32, 6);
  std::vector<Array> tables;
  for (const int threads : {1, 2, 5}) {
    const Stream stream = Stream::create(Device::cpu(), threads);
    const Context context{stream, host_memory(), host_memory()};
    tables.push_back(kit::to_host(tally(x, {}, context).table, context));
    EXPECT_TRUE(kit::same_bits(tables.front(), tables.back())) << threads;
  }
}

TEST(TallyErrors, SayWhatIsWrong) {
  const Context context = kit::context(Device::cpu());
  const auto run = [&](const Array& x, const Tally& settings) { tally(x, settings, context); };
  EXPECT_ERROR(run(kit::random({3}, Dtype::c64, 1), {}), unsupported,
               "tally: `x` has dtype c64; supported: bool, integers, f16, bf16, f32, f64. Add an "
               "`abs` stage before it.");
  EXPECT_ERROR(run(kit::random({1, 1, 1, 1, 1, 1, 1, 2}, Dtype::u8, 1), {.axes = {{7}}}), invalid,
               "tally: one table for each of 7 axes of `x` with shape (1, 1, 1, 1, 1, 1, 1, 2) "
               "gives rank 9; the most is 8.");
  const Array x = kit::random({1}, Dtype::u8, 1).broadcast_to({1LL << 31});
  EXPECT_ERROR(run(x, {}), invalid,
               "tally: `x` with shape (2147483648,) has 2147483648 values a table; the most is "
               "2147483647. Tally fewer samples at once.");
}

}  // namespace
}  // namespace forebay
