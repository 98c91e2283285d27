#include <forebay/array/parallel.h>

#include <algorithm>
#include <atomic>

#include <forebay/array/arena.h>
#include <forebay/array/past_cache.h>

namespace forebay {
namespace {

/// One loop over 0..count in units of `size`. The two atomics order the caller before the bodies
/// and the bodies before the caller where a thread sanitizer sees it; what orders them already is
/// inside oneTBB.
struct Loop {
  RangeBody body;
  std::int64_t count, size, units;
  bool each;  // one call for each unit; else one for neighbouring units together
  std::atomic<bool> begun{false};
  std::atomic<int> ended{0};

  void run() {
    if (units <= 1) {
      if (units == 1) body(0, count);
      end_past_cache();
      return;
    }
    struct AtEnd {
      const Loop& loop;
      ~AtEnd() { (void)loop.ended.load(std::memory_order_acquire); }
    } at_end{*this};
    begun.store(true, std::memory_order_release);
    run_parts(units, part, this);
  }

  static void part(void* object, std::int64_t first, std::int64_t last) {
    Loop& loop = *static_cast<Loop*>(object);
    (void)loop.begun.load(std::memory_order_acquire);
    struct AtEnd {
      Loop& loop;
      ~AtEnd() {
        end_past_cache();
        loop.ended.fetch_add(1, std::memory_order_release);
      }
    } at_end{loop};
    if (!loop.each) return loop.call(first, last);
    for (std::int64_t unit = first; unit < last; ++unit)
      loop.call(unit, unit + 1);
  }

  /// The last unit takes what is left, be it more or less than the others.
  void call(std::int64_t first, std::int64_t last) const {
    body(first * size, last == units ? count : last * size);
  }
};

}  // namespace

void parallel_for(std::int64_t count, std::int64_t grain, RangeBody body) {
  grain = std::max<std::int64_t>(grain, 1);
  const std::int64_t units = count > 0 ? std::max<std::int64_t>(count / grain, 1) : 0;
  Loop{body, count, grain, units, false}.run();
}

void parallel_blocks(std::int64_t count, std::int64_t block, RangeBody body) {
  block = std::max<std::int64_t>(block, 1);
  const std::int64_t units = count > 0 ? (count - 1) / block + 1 : 0;
  Loop{body, count, block, units, true}.run();
}

}  // namespace forebay
