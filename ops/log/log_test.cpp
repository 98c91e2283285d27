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

class LogTest : public kit::DeviceTest {};

DEVICE_TEST(LogTest, IsWithinTwoUlpOfTheTrueValue) {
  kit::expect_within_two_ulp(kFunction, device());
}

DEVICE_TEST(LogTest, IsWithinTwoUlpEverywhereInF32) {
  kit::expect_within_two_ulp_everywhere_in_f32(kFunction, device());
}

DEVICE_TEST(LogTest, ChoosesTheResultsDtypeAndTakesEveryLayoutAndSize) {
  kit::expect_every_layout_and_size(kFunction, device());
}

TEST(LogErrors, SayWhatIsAllowed) { kit::expect_error_texts(kFunction); }

}  // namespace
}  // namespace forebay
