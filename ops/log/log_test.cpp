#include "kit/elementary.h"

#include <forebay/ops/log/log.h>

namespace forebay {
namespace {

const kit::ElementaryFunction kFunction = {
    "log",
    [](const Array& x, std::optional<Dtype> dtype, const Context& context) {
      return log(x, {.dtype = dtype}, context);
    },
    [](long double x) { return std::log(x); }};

class LogTest : public testing::TestWithParam<Device> {};
INSTANTIATE_TEST_SUITE_P(Devices, LogTest, testing::ValuesIn(kit::devices()), kit::device_name);

TEST_P(LogTest, IsWithinTwoUlpOfTheTrueValue) {
  SKIP_WITHOUT(GetParam());
  kit::expect_within_two_ulp(kFunction, GetParam());
}

TEST_P(LogTest, IsWithinTwoUlpEverywhereInF32) {
  SKIP_WITHOUT(GetParam());
  kit::expect_within_two_ulp_everywhere_in_f32(kFunction, GetParam());
}

TEST_P(LogTest, ChoosesTheResultsDtypeAndTakesEveryLayoutAndSize) {
  SKIP_WITHOUT(GetParam());
  kit::expect_every_layout_and_size(kFunction, GetParam());
}

TEST(LogErrors, SayWhatIsAllowed) { kit::expect_error_texts(kFunction); }

}  // namespace
}  // namespace forebay
