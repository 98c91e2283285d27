#include <forebay/integrations/distributed/watch.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include <forebay/array/require.h>

namespace forebay::distributed {
namespace {

using namespace std::chrono_literals;

constexpr const char* kDone = "done";
constexpr const char* kFailed = "failed";
constexpr const char* kEnded = "ended";  // because of another rank

double seconds(std::chrono::milliseconds time) { return static_cast<double>(time.count()) / 1000; }

}  // namespace

std::string Watch::key_of(int rank) { return fmt::format("alive/{}", rank); }
void Watch::announce(Store& store, int rank) { store.set(key_of(rank), "0"); }

Watch::Watch(std::unique_ptr<Store> store, const Environment& environment,
             std::chrono::milliseconds timeout)
    : store_(std::move(store)),
      environment_(environment),
      timeout_(timeout),
      beat_(std::clamp(timeout / 10, 10ms, 1000ms)),
      peers_(static_cast<std::size_t>(environment.size)),
      fates_(static_cast<std::size_t>(environment.size)) {
  for (int rank = 0; rank < environment.size; ++rank)
    keys_.push_back(key_of(rank));
  thread_ = std::thread([this] { run(); });
}

Watch::~Watch() { leave(How::done); }

void Watch::leave(How how) noexcept {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    leaving_ = true;
    how_ = how;
  }
  wake_.notify_all();
  thread_.join();
}

void Watch::run() {
  std::unique_lock lock(mutex_);
  bool told = false;
  std::string wrong;
  while (!told || (environment_.keeps_store && !all_have_left())) {
    const bool leaving = leaving_;
    lock.unlock();
    try {
      const std::string state = !leaving            ? fmt::format("{}", ++beats_)
                                : how_ == How::done ? kDone
                                                    : kFailed;
      if (!told) store_->set(key_of(environment_.rank), state);
      told = leaving;
      if (!told || environment_.keeps_store) wrong = look();
    } catch (const std::exception& error) {
      wrong = fmt::format("{} is gone ({})",
                          environment_.keeps_store ? "its own store" : "the store of the ranks",
                          error.what());
    }
    // A rank that is leaving has its own reason, or none is needed any more.
    if (!wrong.empty() && !leaving) end(wrong);
    if (!wrong.empty()) return;
    lock.lock();
    if (leaving_ == leaving) wake_.wait_for(lock, beat_, [&] { return leaving_ != leaving; });
  }
}

std::string Watch::look() {
  const std::vector<std::string> states = store_->get(keys_);
  const auto now = Clock::now();
  // When this process itself stood still, the silence of the others says nothing.
  const bool late = now - looked_ > timeout_ / 2;
  looked_ = now;
  for (std::size_t rank = 0; rank < states.size(); ++rank) {
    if (static_cast<int>(rank) == environment_.rank || fates_[rank] != Fate::here) continue;
    Peer& peer = peers_[rank];
    const std::string& state = states[rank];
    if (state == kFailed) return fmt::format("rank {} has failed, as it says itself", rank);
    if (state == kDone) fates_[rank] = Fate::done;
    if (state == kEnded) fates_[rank] = Fate::ended;
    if (state != peer.last || late) peer.heard = now;
    peer.last = state;
    if (now - peer.heard > timeout_)
      return fmt::format("rank {} has not been heard of for {} s: it was killed, or is stopped",
                         rank, seconds(timeout_));
  }
  return {};
}

bool Watch::all_have_left() const {
  for (std::size_t rank = 0; rank < fates_.size(); ++rank) {
    if (static_cast<int>(rank) != environment_.rank && fates_[rank] == Fate::here) return false;
  }
  return true;
}

void Watch::wait_for_verdict() const { std::this_thread::sleep_for(timeout_ + 3 * beat_); }

void Watch::end(const std::string& why) {
  std::fprintf(stderr, "forebay: rank %d of %d ends: %s.\n", environment_.rank, environment_.size,
               why.c_str());
  std::fflush(stderr);
  try {
    store_->set(key_of(environment_.rank), kEnded);
    if (environment_.keeps_store) let_others_see();
  } catch (const std::exception&) {  // then nobody reads it
  }
  std::_Exit(1);
}

void Watch::let_others_see() {
  const auto seen = [&](const std::string& state) {
    return state == kDone || state == kFailed || state == kEnded;
  };
  // They find it out when this rank did, or a little later.
  for (const auto end = Clock::now() + timeout_ / 2 + 3 * beat_; Clock::now() < end;) {
    const std::vector<std::string> states = store_->get(keys_);
    const auto left = std::count_if(states.begin(), states.end(), seen);
    const bool some_lost = static_cast<std::size_t>(left) + 1 == states.size();
    if (some_lost || static_cast<std::size_t>(left) == states.size()) return;
    std::this_thread::sleep_for(beat_ / 4);
  }
}

}  // namespace forebay::distributed
