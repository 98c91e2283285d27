#include "kit/elementary.h"

#include <forebay/ops/log1p/log1p.h>

namespace forebay {
namespace {

const kit::ElementaryFunction kFunction = {
    "log1p",
    [](const Array& x, std::optional<Dtype> dtype, const Context& context) {
      return log1p(x, {.dtype = dtype}, context);
    },
    [](long double x) { return std::log1p(x); }};

class Log1pTest : public testing::TestWithParam<Device> {};
INSTANTIATE_TEST_SUITE_P(Devices, Log1pTest, testing::ValuesIn(kit::devices()), kit::device_name);

TEST_P(Log1pTest, IsWithinTwoUlpOfTheTrueValue) {
  SKIP_WITHOUT(GetParam());
  kit::expect_within_two_ulp(kFunction, GetParam());
}

TEST_P(Log1pTest, IsWithinTwoUlpEverywhereInF32) {
  SKIP_WITHOUT(GetParam());
  kit::expect_within_two_ulp_everywhere_in_f32(kFunction, GetParam());
}

TEST_P(Log1pTest, ChoosesTheResultsDtypeAndTakesEveryLayoutAndSize) {
  SKIP_WITHOUT(GetParam());
  kit::expect_every_layout_and_size(kFunction, GetParam());
}

TEST(Log1pErrors, SayWhatIsAllowed) { kit::expect_error_texts(kFunction); }

}  // namespace
}  // namespace forebay
