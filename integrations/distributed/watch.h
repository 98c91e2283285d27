#pragma once

// Internal.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <forebay/integrations/distributed/c10d.h>

namespace forebay::distributed {

/// Tells the other ranks that this one lives, and ends the process when one of them does not: it may
/// be waiting anywhere, so nothing less is sure. A thread of its own, with its own connection.
class Watch {
 public:
  /// `store` is taken over. Every rank must be there: waits for none.
  Watch(std::unique_ptr<Store> store, const Environment& environment,
        std::chrono::milliseconds timeout);
  ~Watch();

  /// Of how this rank begins, in the store; before its watch is made.
  static void announce(Store& store, int rank);
  static std::string key_of(int rank);

  enum class How : std::uint8_t { done, failed };
  /// Tells the others; where this rank keeps the store, waits until they have left or are lost.
  void leave(How how) noexcept;
  /// Whether that rank has left as it should.
  bool is_done(int rank) const { return fates_[static_cast<std::size_t>(rank)] == Fate::done; }
  /// Waits until this process is ended for a rank that is lost, but not longer than that takes.
  void wait_for_verdict() const;

 private:
  using Clock = std::chrono::steady_clock;
  enum class Fate : std::uint8_t { here, done, ended };
  struct Peer {
    std::string last;
    Clock::time_point heard = Clock::now();
  };
  void run();
  /// Looks at all ranks. Returns what is wrong, or nothing.
  std::string look();
  [[noreturn]] void end(const std::string& why);
  /// The store goes with this process: waits until the others have found out, too.
  void let_others_see();
  bool all_have_left() const;

  const std::unique_ptr<Store> store_;
  const Environment environment_;
  const std::chrono::milliseconds timeout_, beat_;
  std::vector<std::string> keys_;
  std::vector<Peer> peers_;
  std::vector<std::atomic<Fate>> fates_;
  std::int64_t beats_ = 0;
  Clock::time_point looked_ = Clock::now();
  std::mutex mutex_;
  std::condition_variable wake_;
  bool leaving_ = false;
  How how_ = How::done;
  std::thread thread_;
};

}  // namespace forebay::distributed
