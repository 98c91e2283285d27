// The only file that includes oneTBB.

#include <algorithm>
#include <atomic>
#include <utility>

#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <forebay/array/arena.h>
#include <forebay/array/parallel.h>

namespace forebay {
namespace {

/// The arena whose work the thread does now: oneTBB tells a thread that it is in some arena, not in
/// which.
thread_local const Arena* current_arena = nullptr;

class Entered {
 public:
  explicit Entered(const Arena* arena) : before_(std::exchange(current_arena, arena)) {}
  ~Entered() { current_arena = before_; }
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;

 private:
  const Arena* before_;
};

/// Orders the caller before the bodies and the bodies before the caller with operations that a
/// thread sanitizer sees; it does not see those inside the oneTBB library.
class Fence {
 public:
  Fence() { begun_.store(true, std::memory_order_release); }
  void before_body() const { (void)begun_.load(std::memory_order_acquire); }
  void after_body() { ended_.fetch_add(1, std::memory_order_release); }
  ~Fence() { (void)ended_.load(std::memory_order_acquire); }

 private:
  std::atomic<bool> begun_{false};
  std::atomic<int> ended_{0};
};

/// Calls `body(first, last)` on parts of 0..units.
template <class Body>
void parallel_units(std::int64_t units, const Body& body) {
  if (units <= 1) {
    if (units == 1) body(0, 1);
    return;
  }
  Fence fence;
  const Arena* const arena = current_arena;
  tbb::parallel_for(tbb::blocked_range<std::int64_t>(0, units),
                    [&](const tbb::blocked_range<std::int64_t>& range) {
                      struct Bounds {
                        Fence& fence;
                        Entered entered;
                        ~Bounds() { fence.after_body(); }
                      } bounds{fence, Entered(arena)};
                      fence.before_body();
                      body(range.begin(), range.end());
                    });
}

}  // namespace

void parallel_for(std::int64_t count, std::int64_t grain, RangeBody body) {
  grain = std::max<std::int64_t>(grain, 1);
  // Whole grains, the rest with the last one.
  const std::int64_t units = count > 0 ? std::max<std::int64_t>(count / grain, 1) : 0;
  parallel_units(units, [&](std::int64_t first, std::int64_t last) {
    body(first * grain, last == units ? count : last * grain);
  });
}

void parallel_blocks(std::int64_t count, std::int64_t block, RangeBody body) {
  block = std::max<std::int64_t>(block, 1);
  const std::int64_t units = count > 0 ? (count - 1) / block + 1 : 0;
  parallel_units(units, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t unit = first; unit < last; ++unit) {
      body(unit * block, unit + 1 == units ? count : (unit + 1) * block);
    }
  });
}

int parallel_threads() { return tbb::this_task_arena::max_concurrency(); }

struct Arena::State {
  tbb::task_arena arena;
};

Arena::Arena(int num_threads)
    : state_(
          new State{tbb::task_arena(num_threads > 0 ? num_threads : tbb::task_arena::automatic)}) {}
Arena::~Arena() = default;

void Arena::run(void (*body)(void*), void* object) {
  const Entered entered(this);
  state_->arena.execute([&] { body(object); });
}

bool Arena::is_current() const { return current_arena == this; }

}  // namespace forebay
