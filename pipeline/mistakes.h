#pragma once

// Internal: collects what is wrong with a spec, so that all of it is said at once.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <forebay/pipeline/spec.h>

namespace forebay {

class Mistakes {
 public:
  /// The place of a line among the others: the number of a stage, or before or after all stages.
  static constexpr int kSettings = -1, kOutput = 1 << 30;
  /// One line: the position when there is one, then `text`.
  void add(int place, const Position& position, const std::string& text);
  bool any() const { return !lines_.empty(); }
  /// Errors: invalid with all lines in the order of their places, when there are any.
  void raise() const;

 private:
  std::multimap<int, std::string> lines_;
};

/// `stage 2 (normalize)`: stages are counted from 1, as people do.
std::string stage_title(const Spec& spec, int stage);

/// `text` without the name of the op that errors of ops begin with.
std::string without_op_name(std::string_view text, std::string_view op);

/// "`a`, `b`".
std::string quoted(const std::vector<std::string>& names);

/// What the user may have meant: " Did you mean `x`?", or nothing.
std::string did_you_mean(const std::string& name, const std::vector<std::string>& names);

/// Adds everything that is wrong with the numbers and the source of `spec`, apart from its stages
/// and output. True when the source's columns are good enough to check the stages with.
bool check_settings(const Spec& spec, Mistakes& mistakes);

}  // namespace forebay
