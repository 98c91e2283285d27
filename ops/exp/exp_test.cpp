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

class ExpTest : public kit::DeviceTest {};

DEVICE_TEST(ExpTest, IsWithinTwoUlpOfTheTrueValue) {
  kit::expect_within_two_ulp(kFunction, device());
}

DEVICE_TEST(ExpTest, IsWithinTwoUlpEverywhereInF32) {
  kit::expect_within_two_ulp_everywhere_in_f32(kFunction, device());
}

DEVICE_TEST(ExpTest, ChoosesTheResultsDtypeAndTakesEveryLayoutAndSize) {
  kit::expect_every_layout_and_size(kFunction, device());
}

TEST(ExpErrors, SayWhatIsAllowed) { kit::expect_error_texts(kFunction); }

}  // namespace
}  // namespace forebay
