// The file of bad samples: each once, whole lines, whoever else writes and whatever was killed.

#include <forebay/pipeline/quarantine.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>
#include <vector>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kit/kit.h"

namespace forebay::test {
namespace {

class QuarantineTest : public testing::Test {
 protected:
  std::string text() const {
    std::ifstream file(path_);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }
  void write(const std::string& text) const { std::ofstream(path_) << text; }
  static std::vector<BadSample> samples(std::int64_t begin, std::int64_t end) {
    std::vector<BadSample> samples;
    for (std::int64_t i = begin; i < end; ++i)
      samples.push_back({"disk", i, "unreadable"});
    return samples;
  }
  static std::string line(std::int64_t index) {
    return R"({"source":"disk","index":)" + std::to_string(index) + ",\"reason\":\"unreadable\"}\n";
  }
  const std::string path_ = kit::temporary_folder() + "/bad.jsonl";
};

TEST_F(QuarantineTest, HasALineForEachSampleOnce) {
  {
    Quarantine list(path_);
    EXPECT_EQ(text(), "");
    list.add(samples(1, 3));
    list.add(samples(2, 4));
    EXPECT_EQ(text(), line(1) + line(2) + line(3));
  }
  Quarantine again(path_);
  again.add(samples(0, 4));
  EXPECT_EQ(text(), line(1) + line(2) + line(3) + line(0));
}

TEST_F(QuarantineTest, TellsSourcesApartAndHoldsAnyText) {
  const std::vector<BadSample> odd = {
      {"a \"b\"\nc", 1, "line 1\nline 2\t\xff"}, {"a \"b\"\nc\xff", 1, ""}, {"", 1, "x"}};
  {
    Quarantine list(path_);
    list.add(odd);
  }
  Quarantine again(path_);
  again.add(odd);
  const std::string got = text();
  EXPECT_EQ(std::count(got.begin(), got.end(), '\n'), 3);
  EXPECT_TRUE(got.starts_with(R"({"source":"a \"b\"\nc","index":1,"reason":"line 1\nline 2\t)"))
      << got;
}

TEST_F(QuarantineTest, TakesAwayALineWithoutItsEnd) {
  const std::string whole = line(1);
  for (std::size_t length = 1; length < whole.size(); ++length) {
    write(line(0) + whole.substr(0, length));
    Quarantine list(path_);
    EXPECT_EQ(text(), line(0));
    list.add(samples(0, 2));
    EXPECT_EQ(text(), line(0) + line(1));
  }
}

TEST_F(QuarantineTest, LeavesOtherFilesAsTheyAre) {
  const auto refused = [&](const std::string& content, const std::string& problem) {
    write(content);
    EXPECT_ERROR(Quarantine{path_}, invalid, path_ + problem);
    EXPECT_EQ(text(), content);
  };
  refused("x,y\n1,2\n",
          ":1: this is no line about a bad sample; name another file as `quarantine`.");
  refused(line(1) + "[]\n",
          ":2: this is no line about a bad sample; name another file as `quarantine`.");
  refused("\x93NUMPY",
          ": it ends with something else than a bad sample; name another file as `quarantine`.");
  refused(line(1) + "{\"a\"",
          ": it ends with something else than a bad sample; name another file as `quarantine`.");
}

TEST_F(QuarantineTest, SaysWhyItCannotBeWritten) {
  const std::string nowhere = path_ + "/none.jsonl";
  EXPECT_ERROR(Quarantine{nowhere}, io,
               nowhere + ": bad samples cannot be listed in it: No such file or directory.");
  EXPECT_ERROR(Quarantine{"/dev/null"}, io,
               "/dev/null: bad samples cannot be listed in it: it is not a file.");
}

TEST_F(QuarantineTest, ALineThatHasNoRoomLeavesNothing) {
  Quarantine list(path_);
  list.add(samples(0, 1));
  const auto before = signal(SIGXFSZ, SIG_IGN);
  rlimit limit = {};
  getrlimit(RLIMIT_FSIZE, &limit);
  const rlimit full{line(0).size() + 5, limit.rlim_max};
  setrlimit(RLIMIT_FSIZE, &full);
  const auto caught = kit::caught([&] { list.add(samples(1, 2)); });
  setrlimit(RLIMIT_FSIZE, &limit);
  signal(SIGXFSZ, before);
  EXPECT_EQ(caught.text, path_ + ": bad samples cannot be listed in it: File too large.");
  EXPECT_EQ(text(), line(0));
  list.add(samples(1, 2));
  EXPECT_EQ(text(), line(0) + line(1));
}

TEST_F(QuarantineTest, ManyProcessesThatAreKilledWriteWholeLinesOfSamplesOnce) {
  constexpr std::int64_t kSamples = 400;
  std::vector<pid_t> children;
  for (int child = 0; child < 6; ++child) {
    const pid_t pid = fork();
    if (pid == 0) {
      Quarantine list(path_);
      for (std::int64_t i = 0; i < kSamples; ++i)
        list.add(samples(i, std::min(i + 3, kSamples)));
      _exit(0);
    }
    children.push_back(pid);
  }
  for (std::size_t i = 0; i < children.size(); ++i) {
    if (i % 2 == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2 * i + 1));
      kill(children[i], SIGKILL);
    }
    int status = 0;
    waitpid(children[i], &status, 0);
  }
  Quarantine(path_).add(samples(0, kSamples));
  std::istringstream lines(text());
  std::set<std::string> got, want;
  std::int64_t count = 0;
  for (std::string next; std::getline(lines, next); ++count)
    got.insert(next + "\n");
  for (std::int64_t i = 0; i < kSamples; ++i)
    want.insert(line(i));
  EXPECT_EQ(got, want);
  EXPECT_EQ(count, kSamples);
}

}  // namespace
}  // namespace forebay::test
