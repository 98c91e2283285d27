#include "kit/kit.h"

#include <cstring>

#include <unistd.h>

#include <forebay/array/host_blocks.h>

namespace forebay {
namespace {

constexpr std::size_t kLarge = (std::size_t{5} << 20) + 3;

TEST(HostBlocksTest, AreAlignedAndWritable) {
  EXPECT_EQ(take_host_block(0), nullptr);
  for (std::size_t bytes : {std::size_t{1}, std::size_t{1000}, kLarge}) {
    void* const data = take_host_block(bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data) % 256, 0U);
    std::memset(data, 1, bytes);
    give_host_block(data, bytes);
  }
  give_host_block(nullptr, kLarge);
}

TEST(HostBlocksTest, AreKeptForTheNextOfTheirSize) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "an address sanitizer sees every block freed";
#endif
  void* const first = take_host_block(kLarge);
  const std::size_t before = kept_host_bytes();
  give_host_block(first, kLarge);
  EXPECT_EQ(kept_host_bytes(), before + (std::size_t{6} << 20));  // whole pages of 2 MiB
  void* const other = take_host_block(2 * kLarge);
  EXPECT_NE(other, first);
  EXPECT_EQ(take_host_block(kLarge - 100), first);  // as many pages
  EXPECT_EQ(kept_host_bytes(), before);
  give_host_block(first, kLarge - 100);
  give_host_block(other, 2 * kLarge);
}

TEST(HostBlocksTest, DropsTheLongestUnusedAboveItsLimit) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "an address sanitizer sees every block freed";
#endif
  // More than there is memory, in address space alone: nobody writes to it.
  const auto limit = static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) *
                     static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) / 8;
  const std::size_t half = limit / 2 / (2 << 20) * (2 << 20);
  std::vector<void*> blocks;
  for (int i = 0; i < 4; ++i)
    blocks.push_back(take_host_block(half));
  for (void* block : blocks)
    give_host_block(block, half);
  EXPECT_LE(kept_host_bytes(), limit);
  EXPECT_GE(kept_host_bytes(), half);
  EXPECT_EQ(take_host_block(half), blocks.back());
  give_host_block(blocks.back(), half);
}

TEST(HostBlocksTest, ServesArraysOfAStream) {
  const Context context = kit::context(Device::cpu());
  [[maybe_unused]] const void* first = nullptr;  // AddressSanitizer keeps blocks apart
  {
    const Array x = Array::empty({3 << 20}, Dtype::u8, context);
    first = x.data();
  }
  context.stream.synchronize();
  const Array y = Array::empty({3 << 20}, Dtype::u8, context);
#if !defined(__SANITIZE_ADDRESS__)
  EXPECT_EQ(y.data(), first);
#endif
  EXPECT_NE(y.data(), nullptr);
}

}  // namespace
}  // namespace forebay
