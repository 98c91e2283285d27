// The only file that includes oneTBB. It is never built with a thread sanitizer, which would see
// the half of oneTBB that is in its headers and not the half that is in its library.

#include <utility>

#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <forebay/array/arena.h>
#include <forebay/array/parallel.h>

namespace forebay {
namespace {

/// The arena whose work the thread does now: oneTBB does not tell.
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

}  // namespace

void run_parts(std::int64_t units, void (*part)(void*, std::int64_t, std::int64_t), void* object) {
  tbb::parallel_for(
      tbb::blocked_range<std::int64_t>(0, units),
      [part, object, arena = current_arena](const tbb::blocked_range<std::int64_t>& range) {
        const Entered entered(arena);
        part(object, range.begin(), range.end());
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
