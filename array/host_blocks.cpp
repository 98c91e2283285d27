#include <forebay/array/host_blocks.h>

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <new>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

namespace forebay {
namespace {

constexpr std::size_t kAlignment = 256;
constexpr std::size_t kPage = std::size_t{2} << 20;  // huge

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kKeeps = false;  // so that the use of freed memory is seen
#else
constexpr bool kKeeps = true;
#endif

bool is_large(std::size_t bytes) { return bytes >= kPage; }
std::size_t whole_pages(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

void* allocate(std::size_t bytes, std::size_t alignment) noexcept {
  return ::operator new (bytes, std::align_val_t{alignment}, std::nothrow);
}
void release(void* data, std::size_t alignment) noexcept {
  ::operator delete (data, std::align_val_t{alignment});
}

/// Freed large blocks, the longest unused first.
class Kept {
 public:
  Kept()
      : limit_(static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) *
               static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) / 8) {}

  /// One of exactly this size, the latest used; null when there is none.
  void* take(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(blocks_.rbegin(), blocks_.rend(),
                                    [&](const Block& block) { return block.bytes == bytes; });
    if (found == blocks_.rend()) return nullptr;
    void* const data = found->data;
    blocks_.erase(std::next(found).base());
    bytes_ -= bytes;
    return data;
  }

  void give(void* data, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    blocks_.push_back({data, bytes});
    bytes_ += bytes;
    while (bytes_ > limit_)
      drop_first();
  }

  void drop_all() {
    const std::lock_guard lock(mutex_);
    while (!blocks_.empty())
      drop_first();
  }

  std::size_t bytes() {
    const std::lock_guard lock(mutex_);
    return bytes_;
  }

 private:
  struct Block {
    void* data;
    std::size_t bytes;
  };
  void drop_first() {
    bytes_ -= blocks_.front().bytes;
    release(blocks_.front().data, kPage);
    blocks_.erase(blocks_.begin());
  }

  const std::size_t limit_;
  std::mutex mutex_;
  std::vector<Block> blocks_;
  std::size_t bytes_ = 0;
};

/// Never destroyed: arrays may be freed at the very end of the program.
Kept& kept() {
  static Kept& blocks = *new Kept;
  return blocks;
}

}  // namespace

void* take_host_block(std::size_t bytes) noexcept {
  if (bytes == 0) return nullptr;
  if (!is_large(bytes)) return allocate(bytes, kAlignment);
  const std::size_t whole = bytes > SIZE_MAX - kPage ? bytes : whole_pages(bytes);
  if (void* const data = kept().take(whole)) return data;
  void* data = allocate(whole, kPage);
  if (data == nullptr) {
    kept().drop_all();
    data = allocate(whole, kPage);
  }
  if (data != nullptr) (void)madvise(data, whole, MADV_HUGEPAGE);  // a wish: all works without
  return data;
}

void give_host_block(void* data, std::size_t bytes) noexcept {
  if (data == nullptr) return;
  if (!is_large(bytes)) return release(data, kAlignment);
  try {
    if (kKeeps) return kept().give(data, whole_pages(bytes));
  } catch (...) {  // no memory for the list
  }
  release(data, kPage);
}

std::size_t kept_host_bytes() { return kept().bytes(); }

}  // namespace forebay
