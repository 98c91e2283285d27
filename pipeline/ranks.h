#pragma once

#include <string>
#include <vector>

#include <forebay/array/view.h>

namespace forebay {

/// The processes of one run, as far as a pass over data needs to know them;
/// every rank makes the same calls. `forebay::distributed::join` gives them.
class RankGroup {
 public:
  virtual ~RankGroup() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Where this rank computes.
  virtual Device device() const = 0;
  /// On rank 0 the text of every rank, in their order; on the others nothing.
  virtual std::vector<std::string> collect(const std::string& text) = 0;
  /// The text of rank 0.
  virtual std::string broadcast(const std::string& text) = 0;
};

}  // namespace forebay
