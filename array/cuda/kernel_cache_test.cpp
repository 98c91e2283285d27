#include <forebay/array/cuda/kernel_cache.h>

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <thread>

#include <fmt/core.h>

#include <forebay/array/cuda/hash.h>

#include "kit/kit.h"

namespace forebay::cuda {
namespace {

namespace fs = std::filesystem;

const KernelSource kSource{
    .name = "halve",
    .text = "extern \"C\" __global__ void halve(f32* x) { x[threadIdx.x] /= 2; }",
    .options = {}};

/// An environment variable with another value until the end of the scope.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    setenv(name, value.c_str(), 1);
  }
  ~Variable() { old_ ? setenv(name_, old_->c_str(), 1) : unsetenv(name_); }

 private:
  const char* name_;
  std::optional<std::string> old_;
};

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  return files;
}

std::string content_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write(const fs::path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

/// A whole entry that holds `code`.
std::string entry_of(const std::string& code) {
  Hash hash;
  hash.add(code);
  return "forebay kernel 1\n" + hash.text() + code;
}

class KernelCacheTest : public testing::Test {
 protected:
  const std::string folder_ = kit::temporary_folder();
  const Variable variable_{"FOREBAY_CACHE_DIR", folder_};
  const std::string expected_ = compile_kernel(kSource, 90);
};

TEST_F(KernelCacheTest, StoresWhatItCompiledUnderAReadableName) {
  EXPECT_EQ(cached_cubin(kSource, 90), expected_);
  const auto files = files_in(folder_);
  ASSERT_EQ(files.size(), 1U);
  EXPECT_EQ(files[0].filename(), "halve-sm_90-" + kernel_key(kSource, 90) + ".cubin");
  EXPECT_EQ(content_of(files[0]), entry_of(expected_));
}

TEST_F(KernelCacheTest, TakesAWholeEntryFromDisk) {
  cached_cubin(kSource, 90);
  write(files_in(folder_)[0], entry_of("from disk"));
  EXPECT_EQ(cached_cubin(kSource, 90), "from disk");
}

TEST_F(KernelCacheTest, SaysWhatItCompilesAndNotWhatItFinds) {
  std::vector<std::string> seen;
  observe_compilation([&](const std::string& name, int architecture) {
    seen.push_back(fmt::format("{} {}", name, architecture));
  });
  cached_cubin(kSource, 90);
  cached_cubin(kSource, 90);
  observe_compilation(nullptr);
  cached_cubin(kSource, 80);
  EXPECT_EQ(seen, std::vector<std::string>{"halve 90"});
}

TEST_F(KernelCacheTest, KeepsWhatElseAMachineFindsOutOnce) {
  EXPECT_EQ(read_cached("matmul-1"), std::nullopt);
  write_cached("matmul-1", std::string("a\0b", 3));
  EXPECT_EQ(read_cached("matmul-1"), std::string("a\0b", 3));
}

TEST_F(KernelCacheTest, ReplacesADamagedEntry) {
  cached_cubin(kSource, 90);
  const fs::path file = files_in(folder_)[0];
  const std::string whole = content_of(file);
  std::string altered = whole, other_magic = whole;
  altered[whole.size() / 2] ^= 1;
  other_magic[0] ^= 1;
  const std::string damaged[] = {"",
                                 whole.substr(0, 10),
                                 whole.substr(0, 49),
                                 whole.substr(0, whole.size() - 1),
                                 whole + '\0',
                                 altered,
                                 other_magic};
  for (const std::string& content : damaged) {
    write(file, content);
    EXPECT_EQ(cached_cubin(kSource, 90), expected_) << content.size() << " bytes";
    EXPECT_EQ(content_of(file), whole) << content.size() << " bytes";
  }
  EXPECT_EQ(files_in(folder_).size(), 1U);
}

TEST_F(KernelCacheTest, WorksWithoutAUsableFolder) {
  write(folder_ + "/file", "in the way");
  const Variable below_a_file("FOREBAY_CACHE_DIR", folder_ + "/file/cache");
  EXPECT_EQ(cached_cubin(kSource, 90), expected_);
  EXPECT_EQ(files_in(folder_).size(), 1U);
}

TEST_F(KernelCacheTest, WorksOnAFullDisk) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "this system has no /dev/full";
  // The entry's temporary file has this name: its writes fail as on a full disk.
  const fs::path entry = fs::path(folder_) / ("halve-sm_90-" + kernel_key(kSource, 90) + ".cubin");
  for (int number = 0; number < 1000; ++number) {
    fs::create_symlink("/dev/full", fmt::format("{}.{}.{}", entry.string(), getpid(), number));
  }
  EXPECT_EQ(cached_cubin(kSource, 90), expected_);
  EXPECT_FALSE(fs::exists(entry));
}

TEST_F(KernelCacheTest, FollowsTheUsersFolders) {
  const Variable none("FOREBAY_CACHE_DIR", "");
  {
    const Variable xdg("XDG_CACHE_HOME", folder_ + "/xdg");
    cached_cubin(kSource, 90);
    EXPECT_EQ(files_in(folder_ + "/xdg/forebay").size(), 1U);
  }
  const Variable no_xdg("XDG_CACHE_HOME", "");
  {
    const Variable home("HOME", folder_ + "/home");
    cached_cubin(kSource, 90);
    EXPECT_EQ(files_in(folder_ + "/home/.cache/forebay").size(), 1U);
  }
  const Variable no_home("HOME", "");
  EXPECT_EQ(cached_cubin(kSource, 90), expected_);
}

TEST_F(KernelCacheTest, KeysDifferWithAllThatTheCodeDependsOn) {
  const std::string key = kernel_key(kSource, 90);
  EXPECT_EQ(key, kernel_key(kSource, 90));
  EXPECT_NE(key, kernel_key(kSource, 80));
  KernelSource other = kSource;
  other.text += " ";
  EXPECT_NE(key, kernel_key(other, 90));
  other = kSource;
  other.options = {"-DA", "-DB"};
  KernelSource joined = kSource;
  joined.options = {"-DA-DB"};
  EXPECT_NE(kernel_key(other, 90), kernel_key(joined, 90));
}

TEST_F(KernelCacheTest, EightProcessesAtOnceLeaveOneWholeEntry) {
  std::vector<pid_t> children;
  for (int i = 0; i < 8; ++i) {
    const pid_t child = fork();
    if (child == 0) _exit(cached_cubin(kSource, 90) == expected_ ? 0 : 1);
    ASSERT_GT(child, 0);
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  const auto files = files_in(folder_);
  ASSERT_EQ(files.size(), 1U);
  EXPECT_EQ(content_of(files[0]), entry_of(expected_));
}

TEST_F(KernelCacheTest, TwoThreadsGetTheSameCode) {
  std::string first, second;
  {
    const std::jthread one([&] { first = cached_cubin(kSource, 90); });
    const std::jthread two([&] { second = cached_cubin(kSource, 90); });
  }
  EXPECT_EQ(first, expected_);
  EXPECT_EQ(second, expected_);
  EXPECT_EQ(files_in(folder_).size(), 1U);
}

TEST(HashTest, IsFnv1aOf128Bits) {
  // Of the empty text: the eight zero bytes of its length.
  Hash empty;
  empty.add("");
  unsigned __int128 state =
      (static_cast<unsigned __int128>(0x6c62272e07bb0142) << 64) | 0x62b821756295c58d;
  for (int i = 0; i < 8; ++i)
    state *= (static_cast<unsigned __int128>(1) << 88) + 0x13b;
  EXPECT_EQ(empty.text(), fmt::format("{:016x}{:016x}", static_cast<std::uint64_t>(state >> 64),
                                      static_cast<std::uint64_t>(state)));
  Hash split, joined;
  split.add("ab");
  split.add("c");
  joined.add("a");
  joined.add("bc");
  EXPECT_NE(split.text(), joined.text());
}

}  // namespace
}  // namespace forebay::cuda
