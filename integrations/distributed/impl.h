#pragma once

// Internal.

#include <exception>
#include <functional>

#include <forebay/array/error.h>
#include <forebay/integrations/distributed/distributed.h>
#include <forebay/integrations/distributed/watch.h>
#include <forebay/pipeline/identity.h>

namespace forebay::distributed {

struct Ranks::Impl {
  Environment environment;
  std::unique_ptr<Store> store;  ///< null with one rank, as those below
  std::unique_ptr<Watch> watch;
  std::unique_ptr<Group> group;  ///< made when it is first needed
  std::int64_t calls = 0;        ///< so far; the texts of each have keys of their own
  int exceptions = std::uncaught_exceptions();
  bool all_know = false;  ///< every rank throws the same: none has to tell the others

  std::string key_of(int rank) const { return std::to_string(calls) + "/" + std::to_string(rank); }
  /// What `call` returns. A connection that ends is what a rank that ends looks like; the watch
  /// knows which, and why, and says so.
  template <class Call>
  auto guarded(const Call& call) {
    try {
      return call();
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::io) watch->wait_for_verdict();
      throw;
    }
  }
  void give(const std::string& text, const char* call);
  std::string take(int rank, const char* call);
  void wait_for(const std::string& key, int rank, const char* call);
  /// Ends a call whose texts, of ranks first..last-1, so many ranks read.
  void finish(int first, int last, int readers);
  /// The texts of all ranks; `call` is what the user called.
  std::vector<std::string> gather(const std::string& text, const char* call);
  /// Compares `parts` with those of all ranks; `problem` kept this rank from having them.
  void agree(const Identity::Parts& parts, const std::string& problem, const char* call);
  Pipeline make_pipeline(const std::function<Spec()>& spec_of, const Ranks& ranks,
                         const Options& options);
};

/// "rank 1", "ranks 0 to 2 and 5".
std::string list_of(const std::vector<int>& ranks);

}  // namespace forebay::distributed
