// What checks let through, for each dtype, and what they say.

#include <forebay/pipeline/value_checks.h>

#include <cmath>
#include <limits>

#include "fixture_test.h"

namespace forebay::test {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// What `check` says of the rows of `x`, in one go.
std::string broken(const Array& x, const Check& check) {
  Spec spec;
  spec.source = array_source({{"x", x}});
  spec.checks = {check};
  const ArrayView views[] = {x.view()};
  return ValueChecks(spec).broken(views, 0, x.shape()[0]).value_or("");
}

template <class T>
Array one_of(T value) {
  return Array::from({1}, std::vector<T>{value});
}

TEST(ValueChecks, BoundsAreInclusiveAndExactForEachDtype) {
  for (const Dtype dtype : kAllDtypes) {
    if (is_complex(dtype) || dtype == Dtype::boolean) continue;
    const Array x = kit::generate({7}, dtype, [](std::int64_t i) { return 10 + i; });
    EXPECT_EQ(broken(x, {.column = "x", .min = 10, .max = 16}), "") << name_of(dtype);
    EXPECT_EQ(broken(x, {.column = "x", .min = 11}), "`x` is 10; it must be at least 11");
    EXPECT_EQ(broken(x, {.column = "x", .max = 15}), "`x` is 16; it must be at most 15");
    EXPECT_EQ(broken(x, {.column = "x", .finite = true, .min = 10, .max = 12}),
              "`x` is 13; it must be 10 to 12, finite");
  }
}

TEST(ValueChecks, IntegersAreComparedAsTheyAre) {
  const std::int64_t big = (std::int64_t{1} << 53) + 1;
  EXPECT_EQ(broken(one_of(big), {.column = "x", .max = big}), "");
  EXPECT_NE(broken(one_of(big), {.column = "x", .max = big - 1}), "");
  const std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(broken(one_of(most), {.column = "x", .min = 0, .max = most}), "");
  EXPECT_NE(broken(one_of(most), {.column = "x", .max = most - 1}), "");
  // Bounds that the dtype does not have.
  EXPECT_EQ(broken(one_of<std::uint8_t>(255), {.column = "x", .min = -1, .max = 256}), "");
  EXPECT_EQ(broken(one_of<std::uint8_t>(255), {.column = "x", .min = 256}),
            "`x` is 255; it must be at least 256");
  EXPECT_EQ(broken(one_of<std::int8_t>(-128), {.column = "x", .max = -129}),
            "`x` is -128; it must be at most -129");
  const Array yes = kit::generate({1}, Dtype::boolean, [](std::int64_t) { return 1; });
  EXPECT_EQ(broken(yes, {.column = "x", .max = 0}), "`x` is 1; it must be at most 0");
  EXPECT_EQ(broken(yes, {.column = "x", .finite = true}), "");
}

TEST(ValueChecks, NaNBreaksEveryCheckAndInfinityFiniteOnes) {
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16, Dtype::f32, Dtype::f64}) {
    const auto of = [&](double value) {
      return kit::generate({1}, dtype, [=](std::int64_t) { return value; });
    };
    EXPECT_EQ(broken(of(kNaN), {.column = "x", .finite = true}), "`x` is nan; it must be finite");
    EXPECT_EQ(broken(of(kNaN), {.column = "x", .min = -1e9}),
              "`x` is nan; it must be at least -1000000000.0");
    EXPECT_NE(broken(of(kNaN), {.column = "x", .max = kInf}), "");
    EXPECT_EQ(broken(of(kInf), {.column = "x", .min = 0}), "");
    EXPECT_EQ(broken(of(kInf), {.column = "x", .finite = true, .min = 0}),
              "`x` is inf; it must be at least 0, finite");
    EXPECT_EQ(broken(of(-kInf), {.column = "x", .finite = true}), "`x` is -inf; it must be finite");
  }
  // An f32 is compared as the number that it is, not with a rounded bound.
  EXPECT_EQ(broken(one_of(0.1f), {.column = "x", .min = 0.1}), "");
  EXPECT_NE(broken(one_of(0.1f), {.column = "x", .max = 0.1}), "");
}

TEST(ValueChecks, BothPartsOfAComplexNumberAreLookedAt) {
  const auto of = [](float real, float imaginary) {
    return Array::from({1, 2}, std::vector<std::complex<float>>{{1, 2}, {real, imaginary}});
  };
  const auto inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(broken(of(3, 4), {.column = "x", .finite = true}), "");
  EXPECT_EQ(broken(of(inf, 4), {.column = "x", .finite = true}),
            "`x`[1] is inf; it must be finite");
  EXPECT_EQ(broken(of(3, -inf), {.column = "x", .finite = true}),
            "`x`[1] is -inf; it must be finite");
}

TEST(ValueChecks, TheFirstValueIsNamedWithItsPlace) {
  const Array x = kit::generate({2, 3, 4}, Dtype::f32,
                                [](std::int64_t i) { return i == 17 || i == 21 ? 300.0 : 1.0; });
  EXPECT_EQ(broken(x, {.column = "x", .max = 255}), "`x`[1, 1] is 300; it must be at most 255");
  EXPECT_EQ(broken(Array::from({0, 3}, std::vector<float>{}), {.column = "x", .max = 255}), "");
  EXPECT_EQ(broken(Array::from({3, 0}, std::vector<float>{}), {.column = "x", .max = 255}), "");
}

TEST(ValueChecks, SaysWhatIsWrongWithThem) {
  const auto wrong = [](std::vector<Check> checks, OnError on_error = {}) {
    Spec spec = counting_spec(Device::cpu());
    spec.source = array_source({{"image", kit::random({4, 2}, Dtype::f32, 1)},
                                {"label", kit::random({4}, Dtype::i64, 1, 0, 9)},
                                {"wave", kit::random({4}, Dtype::c64, 1)}});
    spec.checks = std::move(checks);
    spec.on_error = std::move(on_error);
    return kit::caught([&] { plan_of(spec); }).text;
  };
  EXPECT_EQ(wrong({{.column = "lable", .min = 0}}),
            "checks: the source has no column `lable`; it has `image`, `label`, `wave`. Did you "
            "mean `label`?");
  EXPECT_EQ(wrong({{.column = "label"}}),
            "checks: `label`: nothing is asked of it; give finite, min or max.");
  EXPECT_EQ(wrong({{.column = "wave", .max = 3}}),
            "checks: `wave` has dtype c64, which has no order; only finite can be asked of it.");
  EXPECT_EQ(wrong({{.column = "label", .max = 9.5}}),
            "checks: `label` has dtype i64; its bounds must be whole numbers.");
  EXPECT_EQ(wrong({{.column = "image", .min = 1, .max = 0.5}, {.column = "image", .min = kNaN}}),
            "checks: `image`: min is 1 and max 0.5; min must be at most max.\n"
            "checks: `image`: a bound is nan; it must be a number.");
  EXPECT_EQ(wrong({}, {.quarantine = "bad.jsonl"}),
            "on_error: max_count, max_share and quarantine are for modes skip and replace; leave "
            "them out.");
  EXPECT_EQ(wrong({}, {.mode = ErrorMode::skip, .max_count = -1, .max_share = 1.5}),
            "on_error: `max_count` is -1; it must be at least 0.\n"
            "on_error: `max_share` is 1.5; it must be between 0 and 1.");
}

}  // namespace
}  // namespace forebay::test
