#pragma once

// Internal: the file that bad samples are listed in.

#include <cstdint>
#include <span>
#include <string>
#include <unordered_set>

#include <forebay/pipeline/stats.h>

namespace forebay {

/// A list of samples, each once: a line of JSON for each, {"source":"..","index":5,"reason":".."}.
/// Other processes may add to the file at the same time. For one thread.
class Quarantine {
 public:
  /// Opens or makes the file. Errors: io when that cannot be done; invalid for a file that holds
  /// something else, which stays as it is.
  explicit Quarantine(std::string path);
  ~Quarantine();
  Quarantine(const Quarantine&) = delete;
  Quarantine& operator=(const Quarantine&) = delete;

  /// Adds those that the file does not have: whole lines, or none. Errors: io.
  void add(std::span<const BadSample> samples);

 private:
  void read_on();
  void take_line(const std::string& line);
  void append(const std::string& lines);

  const std::string path_;
  const int file_;
  std::int64_t known_bytes_ = 0;  // whose lines are in `known_`
  std::int64_t lines_ = 0;
  std::unordered_set<std::string> known_;
};

}  // namespace forebay
