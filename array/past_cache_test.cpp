#include "kit/kit.h"

#include <forebay/array/parallel.h>
#include <forebay/array/past_cache.h>

namespace forebay {
namespace {

TEST(PastCacheTest, CopiesAnySizeFromAndToAnyAddress) {
  std::vector<unsigned char> from(1024);
  for (std::size_t i = 0; i < from.size(); ++i)
    from[i] = static_cast<unsigned char>(i * 37 + 1);
  for (std::size_t size : {0, 1, 15, 16, 63, 64, 65, 127, 128, 500}) {
    for (std::size_t at = 0; at < 65; ++at) {
      for (std::size_t start : {0, 1, 16, 33}) {
        std::vector<unsigned char> to(1024, 7), want = to;
        std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(start), size,
                    want.begin() + static_cast<std::ptrdiff_t>(at));
        copy_past_cache(to.data() + at, from.data() + start, size);
        end_past_cache();
        ASSERT_EQ(to, want) << size << " " << at << " " << start;
      }
    }
  }
}

TEST(PastCacheTest, IsSeenAfterParallelFor) {
  std::vector<std::int64_t> from(1 << 20), to(from.size());
  for (std::size_t i = 0; i < from.size(); ++i)
    from[i] = static_cast<std::int64_t>(i);
  parallel_for(static_cast<std::int64_t>(from.size()), 1000, [&](std::int64_t a, std::int64_t b) {
    copy_past_cache(to.data() + a, from.data() + a, static_cast<std::size_t>(b - a) * 8);
  });
  EXPECT_EQ(to, from);
}

}  // namespace
}  // namespace forebay
