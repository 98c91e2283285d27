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

class Log1pTest : public kit::DeviceTest {};

DEVICE_TEST(Log1pTest, IsWithinTwoUlpOfTheTrueValue) {
  kit::expect_within_two_ulp(kFunction, device());
}

DEVICE_TEST(Log1pTest, IsWithinTwoUlpEverywhereInF32) {
  kit::expect_within_two_ulp_everywhere_in_f32(kFunction, device());
}

DEVICE_TEST(Log1pTest, ChoosesTheResultsDtypeAndTakesEveryLayoutAndSize) {
  kit::expect_every_layout_and_size(kFunction, device());
}

TEST(Log1pErrors, SayWhatIsAllowed) { kit::expect_error_texts(kFunction); }

}  // namespace
}  // namespace forebay
