#pragma once

// Internal: LibTorch's c10d, which c10d.cpp alone includes.

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <forebay/integrations/distributed/environment.h>

namespace at {
class Tensor;
}

namespace forebay::distributed {

/// A connection to the store of texts by key that all ranks see. Calls that find it gone throw io,
/// with the reason. Of one thread.
class Store {
 public:
  enum class Role : std::uint8_t { keeper, client };
  /// Connects, within `timeout`. Errors: io.
  Store(const Environment& environment, Role role, std::chrono::milliseconds timeout);
  ~Store();

  /// Any length.
  void set(const std::string& key, const std::string& text);
  bool has(const std::string& key);
  /// Of a key that is there.
  std::string get(const std::string& key);
  /// Of keys that are there, in one message; texts of less than 1 MiB.
  std::vector<std::string> get(const std::vector<std::string>& keys);
  /// Adds to a counter, from 0; returns the sum.
  std::int64_t add(const std::string& key, std::int64_t number);
  void erase(const std::string& key);

 private:
  friend class Group;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Gloo's connections between all ranks.
class Group {
 public:
  /// Every rank does so, with a store that outlives it. Errors: io.
  Group(Store& store, const Environment& environment);
  ~Group();
  /// See `Ranks`. Errors: invalid; io when a rank is gone.
  void average_gradients(const std::vector<at::Tensor>& parameters, double weight);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace forebay::distributed
