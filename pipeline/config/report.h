#pragma once

#include <string>
#include <utility>
#include <vector>

#include <forebay/pipeline/spec.h>

namespace forebay::config {

/// Everything that is wrong with a file, and what the user should know though it is right.
class Report {
 public:
  void mistake(const Position& position, std::string text) {
    mistakes_.push_back({position, std::move(text)});
  }
  void note(const Position& position, const std::string& text);
  std::size_t mistakes() const { return mistakes_.size(); }
  const std::vector<std::string>& notes() const { return notes_; }

  /// Errors: invalid when there are mistakes: a line each in the order of the file, then the lines
  /// of `more`.
  void raise(const std::string& more = "");

 private:
  std::vector<std::pair<Position, std::string>> mistakes_;
  std::vector<std::string> notes_;
};

}  // namespace forebay::config
