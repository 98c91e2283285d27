#include <forebay/array/cuda/kernel_cache.h>

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <optional>

#include <fmt/core.h>

#include <forebay/array/cuda/hash.h>

namespace forebay::cuda {
namespace {

namespace fs = std::filesystem;

/// A file is this, the hash of the content in 32 digits, and the content: a short, torn or altered file is seen by
/// the hash.
constexpr std::string_view kMagic = "forebay kernel 1\n";

std::string hash_of(std::string_view code) {
  Hash hash;
  hash.add(code);
  return hash.text();
}

std::optional<fs::path> cache_folder() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return fs::path(value == nullptr ? "" : value);
  };
  if (const fs::path folder = variable("FOREBAY_CACHE_DIR"); !folder.empty()) return folder;
  if (const fs::path folder = variable("XDG_CACHE_HOME"); !folder.empty())
    return folder / "forebay";
  if (const fs::path folder = variable("HOME"); !folder.empty()) return folder / ".cache/forebay";
  return std::nullopt;
}

std::optional<std::string> read_entry(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string content{std::istreambuf_iterator<char>(file), {}};
  constexpr std::size_t header = kMagic.size() + 32;
  if (content.size() < header || !content.starts_with(kMagic)) return std::nullopt;
  const std::string code = content.substr(header);
  if (content.compare(kMagic.size(), 32, hash_of(code)) != 0) return std::nullopt;
  return code;
}

/// Readers see the whole entry or none: it is written under a name of its own and renamed. Failure
/// costs the caching.
void write_entry(const fs::path& path, const std::string& code) {
  static std::atomic<int> written = 0;
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  const fs::path temporary = fmt::format("{}.{}.{}", path.string(), getpid(), written++);
  std::ofstream file(temporary, std::ios::binary);
  file << kMagic << hash_of(code) << code;
  file.close();
  if (file) fs::rename(temporary, path, error);
  if (!file || error) fs::remove(temporary, error);
}

/// Copied out before it is called, so that it may be exchanged meanwhile.
struct Observer {
  std::mutex mutex;
  std::function<void(const std::string&, int)> call;
};
Observer& observer() {
  static Observer instance;
  return instance;
}

}  // namespace

void observe_compilation(std::function<void(const std::string& name, int architecture)> call) {
  const std::lock_guard lock(observer().mutex);
  observer().call = std::move(call);
}

std::optional<std::string> read_cached(const std::string& name) {
  const std::optional<fs::path> folder = cache_folder();
  return folder ? read_entry(*folder / name) : std::nullopt;
}

void write_cached(const std::string& name, const std::string& content) {
  if (const std::optional<fs::path> folder = cache_folder()) write_entry(*folder / name, content);
}

std::string kernel_key(const KernelSource& source, int architecture) {
  static const Hash compiler = [] {
    Hash hash;
    hash.add(nvrtc_version());
    hash.add(kernel_prelude());
    return hash;
  }();
  Hash hash = compiler;
  hash.add(source.name);
  hash.add(source.text);
  for (const std::string& option : nvrtc_options(source, architecture))
    hash.add(option);
  return hash.text();
}

std::string cached_cubin(const KernelSource& source, int architecture) {
  const std::string name =
      fmt::format("{}-sm_{}-{}.cubin", source.name, architecture, kernel_key(source, architecture));
  if (std::optional<std::string> code = read_cached(name)) return *std::move(code);
  std::unique_lock lock(observer().mutex);
  const auto call = observer().call;
  lock.unlock();
  if (call) call(source.name, architecture);
  std::string code = compile_kernel(source, architecture);
  write_cached(name, code);
  return code;
}

}  // namespace forebay::cuda
