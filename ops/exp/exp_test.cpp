#include "kit/elementary.h"

#include <forebay/ops/exp/exp.h>

namespace forebay {
namespace {

const kit::ElementaryFunction kFunction = {
    "exp",
    [](const Array& x, std::optional<Dtype> dtype, const Context& context) {
      return exp(x, {.dtype = dtype}, context);
    },
    [](long double x) { return std::exp(x); }};

class ExpTest : public testing::TestWithParam<Device> {};
INSTANTIATE_TEST_SUITE_P(Devices, ExpTest, testing::ValuesIn(kit::devices()), kit::device_name);

TEST_P(ExpTest, IsWithinTwoUlpOfTheTrueValue) {
  SKIP_WITHOUT(GetParam());
  kit::expect_within_two_ulp(kFunction, GetParam());
}

TEST_P(ExpTest, IsWithinTwoUlpEverywhereInF32) {
  SKIP_WITHOUT(GetParam());
  kit::expect_within_two_ulp_everywhere_in_f32(kFunction, GetParam());
}

TEST_P(ExpTest, ChoosesTheResultsDtypeAndTakesEveryLayoutAndSize) {
  SKIP_WITHOUT(GetParam());
  kit::expect_every_layout_and_size(kFunction, GetParam());
}

TEST(ExpErrors, SayWhatIsAllowed) { kit::expect_error_texts(kFunction); }

}  // namespace
}  // namespace forebay
