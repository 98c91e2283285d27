#pragma once

// A run that is killed again and again, and what it leaves.

#include <csignal>
#include <map>
#include <random>
#include <thread>

#include <fmt/core.h>

#include <forebay/pipeline/cli/command_test.h>

namespace forebay::test {

class KilledRun : public Cli {
 protected:
  void SetUp() override {
    Cli::SetUp();
    null_ = open("/dev/null", O_RDWR | O_CLOEXEC);
  }
  void TearDown() override { close(null_); }

  /// `samples` rows of x, in an order anew in each epoch.
  void declare(std::int64_t samples, std::int64_t batch_size) {
    write_npy(folder_ + "/x.npy", kit::random({samples, 3}, Dtype::f32, 1).view());
    write("train.yaml", fmt::format("version: 1\n"
                                    "batch_size: {}\n"
                                    "device: cpu\n"
                                    "source: {{type: npy, columns: {{x: x.npy}}}}\n"
                                    "shuffle: {{mode: full}}\n"
                                    "stages:\n"
                                    "  - {{op: clip, min: -1, max: 1}}\n",
                                    batch_size));
  }

  /// The files of a run that nobody stops, by name.
  std::map<std::string, std::string> files_of(const std::string& folder) const {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::directory_iterator(folder_ + "/" + folder))
      files[entry.path().filename().string()] = text_of(entry.path().string());
    return files;
  }

  /// Runs to the end of epoch 2 with SIGKILL at random moments, each behind some batch. Returns
  /// how many processes it took; 0 when one failed.
  int run_killed(int seed) {
    std::mt19937 random(static_cast<unsigned>(seed));
    const std::string state = folder_ + "/state.json";
    for (int lives = 1;; ++lives) {
      const std::string before = text_of(state);
      const pid_t child =
          start({"run", "train.yaml", "--epochs", "3", "--state", "state.json", "--save", "killed"},
                null_, null_);
      int status = 0;
      pid_t ended = 0;
      while ((ended = waitpid(child, &status, WNOHANG)) == 0 && text_of(state) == before)
        std::this_thread::sleep_for(std::chrono::microseconds(100));
      if (ended == 0) {
        std::this_thread::sleep_for(std::chrono::microseconds(random() % 3000));
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
      }
      if (WIFEXITED(status)) return WEXITSTATUS(status) == 0 ? lives : 0;
    }
  }

  int null_ = -1;
};

}  // namespace forebay::test
