#include <forebay/pipeline/config/config.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <forebay/array/require.h>
#include <forebay/pipeline/config/bind.h>
#include <forebay/pipeline/config/text_file.h>
#include <forebay/pipeline/plan.h>

namespace forebay {

std::string config::text_of_file(const std::string& path) {
  FOREBAY_REQUIRE(!std::filesystem::is_directory(path), io, "{}: it is a folder; give a YAML file.",
                  path);
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  FOREBAY_REQUIRE(file.is_open(), io, "{}: cannot be opened: {}.", path, std::strerror(errno));
  text << file.rdbuf();
  FOREBAY_REQUIRE(!file.bad(), io, "{}: cannot be read: {}.", path, std::strerror(errno));
  return std::move(text).str();
}

namespace {

/// What compiling finds beside the mistakes of the file itself.
std::string compile_mistakes(Spec spec) {
  try {
    compile(std::make_shared<const Spec>(std::move(spec)));
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace

Spec load_spec(const std::string& path, const LoadOptions& options) {
  config::Report report;
  const config::Node root = config::parse_yaml(config::text_of_file(path), path);
  config::Bound bound = config::bind_pipeline(
      root, std::filesystem::path(path).parent_path().string(), options, report);
  if (report.mistakes() > 0)
    report.raise(bound.complete ? compile_mistakes(std::move(bound.spec)) : "");
  if (root.find("name") == nullptr) bound.spec.name = std::filesystem::path(path).stem().string();
  if (options.notes != nullptr) *options.notes = report.notes();
  return std::move(bound.spec);
}

StageSpec parse_stage(std::string_view yaml, const std::string& folder) {
  config::Report report;
  const config::Node node = config::parse_yaml(std::string(yaml), "stage");
  auto stage = config::bind_stage(node, 1, folder, Presence::required, report);
  report.raise();
  return std::move(*stage);
}

}  // namespace forebay
