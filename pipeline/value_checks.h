#pragma once

// Internal: what a spec says of the values of its columns.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <forebay/pipeline/mistakes.h>

namespace forebay {

/// Adds what is wrong with the checks and with `on_error`. `spec` has a source whose columns are
/// right.
void check_error_settings(const Spec& spec, Mistakes& mistakes);

/// "finite", "at least 0", "0 to 9, finite".
std::string to_string(const Check& check);

/// Safe to use from any thread.
class ValueChecks {
 public:
  explicit ValueChecks(const Spec& spec);

  /// What the samples in rows begin..end-1 break, of the first value that breaks anything: "`x`[0, 2]
  /// is nan; it must be finite". `columns`: dense host arrays [rows, ...], as the source has them.
  std::optional<std::string> broken(std::span<const ArrayView> columns, std::int64_t begin,
                                    std::int64_t end) const;

 private:
  struct Bound {
    std::size_t column;
    Check check;
  };
  std::vector<Bound> bounds_;
};

}  // namespace forebay
