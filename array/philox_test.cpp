#include <forebay/array/philox.h>

#include "kit/kit.h"

namespace forebay {
namespace {

using Words = std::array<std::uint32_t, 4>;

// The known answers that Random123 publishes for philox4x32 with 10 rounds (kat_vectors).
TEST(Philox, GivesTheWordsOfRandom123) {
  EXPECT_EQ(philox({0, 0, 0, 0}, 0), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, 0xffffffffffffffff),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0x299f31d0a4093822),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

}  // namespace
}  // namespace forebay
