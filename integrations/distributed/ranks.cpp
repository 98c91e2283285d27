#include <exception>
#include <thread>

#include <forebay/array/require.h>
#include <forebay/integrations/distributed/impl.h>

namespace forebay::distributed {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// Waits until `ready`, looking less and less often.
template <class Ready>
void poll(const Ready& ready) {
  for (auto pause = 50us; !ready(); pause = std::min(2 * pause, std::chrono::microseconds(5ms)))
    std::this_thread::sleep_for(pause);
}

/// Returns when every rank has announced itself.
void meet(Store& store, const Environment& environment, std::chrono::milliseconds timeout) {
  const auto end = Clock::now() + timeout;
  std::vector<int> missing;
  poll([&] {
    missing.clear();
    for (int rank = 0; rank < environment.size; ++rank)
      if (!store.has(Watch::key_of(rank))) missing.push_back(rank);
    return missing.empty() || Clock::now() > end;
  });
  FOREBAY_REQUIRE(missing.empty(), io,
                  "join: of {} ranks, {} did not come within {} s; see what they say.",
                  environment.size, list_of(missing), static_cast<double>(timeout.count()) / 1000);
}

}  // namespace

Ranks::Ranks(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Ranks::Ranks(Ranks&&) noexcept = default;
Ranks& Ranks::operator=(Ranks&&) noexcept = default;

Ranks::~Ranks() {
  if (impl_ == nullptr || impl_->watch == nullptr) return;
  const bool thrown = std::uncaught_exceptions() > impl_->exceptions && !impl_->all_know;
  impl_->watch->leave(thrown ? Watch::How::failed : Watch::How::done);
}

int Ranks::rank() const { return impl_->environment.rank; }
int Ranks::size() const { return impl_->environment.size; }
int Ranks::local_rank() const { return impl_->environment.local_rank; }

Device Ranks::device() const {
  const int devices = cuda_device_count();
  return devices > 0 ? Device::cuda(local_rank() % devices) : Device::cpu();
}

Ranks join(const JoinOptions& options) {
  FOREBAY_REQUIRE(options.timeout >= 100ms, invalid,
                  "join: `timeout` is {} ms; it must be at least 100 ms.", options.timeout.count());
  auto impl = std::make_unique<Ranks::Impl>();
  impl->environment = read_environment();
  Environment& environment = impl->environment;
  if (environment.size > 1) {
    // So that a program may join again.
    static int joined = 0;
    environment.run += fmt::format(".{}", joined++);
    const auto connect = [&](Store::Role role) {
      return std::make_unique<Store>(environment, role, options.start_timeout);
    };
    impl->store = connect(environment.keeps_store ? Store::Role::keeper : Store::Role::client);
    Watch::announce(*impl->store, environment.rank);
    meet(*impl->store, environment, options.start_timeout);
    impl->watch =
        std::make_unique<Watch>(connect(Store::Role::client), environment, options.timeout);
  }
  return Ranks(std::move(impl));
}

void Ranks::Impl::wait_for(const std::string& key, int rank, const char* call) {
  poll([&] {
    const bool done = watch->is_done(rank);
    if (store->has(key)) return true;
    FOREBAY_REQUIRE(!done, invalid,
                    "{}: rank {} has left already; every rank must make the same calls.", call,
                    rank);
    return false;
  });
}

void Ranks::Impl::give(const std::string& text, const char* call) {
  store->set(key_of(environment.rank), fmt::format("{}\n{}", call, text));
}

std::string Ranks::Impl::take(int rank, const char* call) {
  wait_for(key_of(rank), rank, call);
  const std::string text = store->get(key_of(rank));
  const std::size_t line = text.find('\n');
  const std::string theirs = text.substr(0, line);
  FOREBAY_REQUIRE(
      theirs == call, invalid,
      "rank {} is in `{}` while rank {} is in `{}`; every rank must make the same calls "
      "in the same order.",
      rank, theirs, environment.rank, call);
  return text.substr(line + 1);
}

void Ranks::Impl::finish(int first, int last, int readers) {
  // Nobody comes back to a call: the last reader of its texts takes them away.
  const std::string counter = fmt::format("{}/read", calls);
  if (store->add(counter, 1) == readers) {
    for (int rank = first; rank < last; ++rank)
      store->erase(key_of(rank));
    store->erase(counter);
  }
  ++calls;
}

std::vector<std::string> Ranks::Impl::gather(const std::string& text, const char* call) {
  if (environment.size == 1) return {text};
  return guarded([&] {
    give(text, call);
    std::vector<std::string> texts;
    for (int rank = 0; rank < environment.size; ++rank)
      texts.push_back(take(rank, call));
    finish(0, environment.size, environment.size);
    return texts;
  });
}

std::vector<std::string> Ranks::gather(const std::string& text) {
  return impl_->gather(text, "gather");
}

std::vector<std::string> Ranks::collect(const std::string& text) {
  if (size() == 1) return {text};
  return impl_->guarded([&] {
    impl_->give(text, "collect");
    std::vector<std::string> texts;
    for (int rank = 0; is_first() && rank < size(); ++rank)
      texts.push_back(impl_->take(rank, "collect"));
    // The others have read nothing, and do not wait: only rank 0 notices another call of theirs.
    if (is_first()) {
      impl_->finish(0, size(), 1);
    } else {
      ++impl_->calls;
    }
    return texts;
  });
}

std::string Ranks::broadcast(const std::string& text) {
  if (size() == 1) return text;
  return impl_->guarded([&] {
    if (is_first()) impl_->give(text, "broadcast");
    std::string got = impl_->take(0, "broadcast");
    impl_->finish(0, 1, size());
    return got;
  });
}

void Ranks::barrier() { impl_->gather({}, "barrier"); }

void Ranks::average_gradients(const std::vector<at::Tensor>& parameters, double weight) {
  FOREBAY_REQUIRE(weight >= 0, invalid, "average_gradients: `weight` is {}; it must be at least 0.",
                  weight);
  if (size() == 1) return;
  impl_->guarded([&] {
    if (impl_->group == nullptr)
      impl_->group = std::make_unique<Group>(*impl_->store, impl_->environment);
    try {
      impl_->group->average_gradients(parameters, weight);
    } catch (const Error& error) {
      impl_->all_know |= error.kind() == ErrorKind::invalid;
      throw;
    }
  });
}

}  // namespace forebay::distributed

/// What the command `forebay` asks for when torchrun has started it.
extern "C" forebay::RankGroup* forebay_join_ranks() {
  return new forebay::distributed::Ranks(forebay::distributed::join());
}
