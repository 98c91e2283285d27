#pragma once

#include <cstdint>

namespace forebay {

/// Borrows a callable `void(std::int64_t begin, std::int64_t end)` for the duration of one call.
class RangeBody {
 public:
  template <class F>
  RangeBody(const F& f)  // NOLINT(google-explicit-constructor): a borrowed lambda at a call site
      : object_(&f), call_([](const void* object, std::int64_t begin, std::int64_t end) {
          (*static_cast<const F*>(object))(begin, end);
        }) {}
  void operator()(std::int64_t begin, std::int64_t end) const { call_(object_, begin, end); }

 private:
  const void* object_;
  void (*call_)(const void*, std::int64_t, std::int64_t);
};

/// Calls `body` on disjoint ranges that cover 0..count, each of at least `grain` (the last may be
/// shorter), on the oneTBB arena of the calling thread: a CPU stream's own inside its tasks.
/// Returns when all are done; rethrows the first exception.
void parallel_for(std::int64_t count, std::int64_t grain, RangeBody body);

/// Like parallel_for, over fixed blocks: block i is i*block..min(count, (i+1)*block), whatever the
/// thread count. For results that are merged per block in a fixed order.
void parallel_blocks(std::int64_t count, std::int64_t block, RangeBody body);

/// Threads that parallel_for can use from here.
int parallel_threads();

}  // namespace forebay
