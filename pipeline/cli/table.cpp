#include <algorithm>

#include <forebay/pipeline/cli/commands.h>

namespace forebay::cli {

std::string table(const std::vector<std::string>& titles,
                  const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const std::string& title : titles)
    widths.push_back(title.size());
  for (const auto& row : rows) {
    for (std::size_t c = 0; c < row.size(); ++c)
      widths[c] = std::max(widths[c], row[c].size());
  }
  std::string text;
  const auto add = [&](const std::vector<std::string>& row) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      line += row[c] + std::string(widths[c] - row[c].size() + 2, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  };
  add(titles);
  for (const auto& row : rows)
    add(row);
  return text;
}

}  // namespace forebay::cli
