#include <forebay/pipeline/config/report.h>

#include <algorithm>
#include <tuple>

#include <forebay/array/error.h>

namespace forebay::config {

void Report::note(const Position& position, const std::string& text) {
  notes_.push_back(to_string(position) + ": note: " + text);
}

void Report::raise(const std::string& more) {
  if (mistakes_.empty()) return;
  std::stable_sort(mistakes_.begin(), mistakes_.end(), [](const auto& a, const auto& b) {
    return std::tie(a.first.line, a.first.column) < std::tie(b.first.line, b.first.column);
  });
  std::string text;
  for (const auto& [position, line] : mistakes_)
    text += to_string(position) + ": " + line + "\n";
  text += more;
  while (text.ends_with('\n'))
    text.pop_back();
  throw Error(ErrorKind::invalid, text);
}

}  // namespace forebay::config
