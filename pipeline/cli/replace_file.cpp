#include <forebay/pipeline/cli/replace_file.h>

#include <filesystem>
#include <fstream>

#include <forebay/array/require.h>

namespace forebay::cli {

void replace_file(const std::string& path, const std::string& text) {
  const std::string part = path + ".part";
  std::ofstream file(part, std::ios::binary);
  file << text;
  file.close();
  std::error_code error;
  if (file.good()) std::filesystem::rename(part, path, error);
  FOREBAY_REQUIRE(file.good() && !error, io, "{}: it cannot be written.", path);
}

}  // namespace forebay::cli
