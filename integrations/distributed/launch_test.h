#pragma once

// Processes of the tests: ranks with a store of their own, or under torchrun. None lives longer than
// its test.

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include <forebay/integrations/distributed/distributed.h>
#include <forebay/pipeline/source.h>

#include "kit/kit.h"

namespace forebay::test {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

struct Outcome {
  int exit_code = -1;  ///< 128 and the signal's number; -1 when it had to be killed
  std::string text;    ///< of stdout and stderr
};

/// A port that nobody has now; the kernel gives another to the next who asks.
inline int free_port() {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  bind(listener, reinterpret_cast<sockaddr*>(&address), size);
  getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
  close(listener);
  return ntohs(address.sin_port);
}

class Launch : public kit::DeviceTest {
 protected:
  void SetUp() override {
    write_npy(folder_ + "/x.npy", kit::random({kSamples, 3}, Dtype::f32, 1).view());
    write_npy(folder_ + "/other.npy", kit::random({kSamples, 3}, Dtype::f32, 2).view());
    declare("train.yaml", {});
  }

  struct Declared {
    std::string minimum = "min: -1", data = "x.npy";
    int seed = 5, batch_size = 4;
  };
  void declare(const std::string& name, const Declared& declared) const {
    std::ofstream(folder_ + "/" + name)
        << "version: 1\nbatch_size: " << declared.batch_size << "\nseed: " << declared.seed
        << "\ndevice: cpu\nsource: {type: npy, columns: {x: " << declared.data
        << "}}\nshuffle: {mode: full}\nstages:\n  - {op: clip, " << declared.minimum
        << ", max: 1}\n";
  }

  /// The command in the test's folder, with these variables of the environment; several at once.
  struct Command {
    std::vector<std::string> words, environment;
  };
  std::vector<Outcome> run(const std::vector<Command>& commands) const {
    std::vector<pid_t> children;
    for (std::size_t i = 0; i < commands.size(); ++i)
      children.push_back(start(commands[i], log_of(i)));
    const auto end = std::chrono::steady_clock::now() + kLongest;
    std::vector<Outcome> outcomes;
    for (std::size_t i = 0; i < commands.size(); ++i) {
      Outcome outcome;
      int status = 0;
      while (waitpid(children[i], &status, WNOHANG) == 0) {
        if (std::chrono::steady_clock::now() < end) {
          std::this_thread::sleep_for(5ms);
          continue;
        }
        kill(-children[i], SIGKILL);  // the whole group: torchrun has children
        waitpid(children[i], &status, 0);
        status = -1;
        break;
      }
      outcome.exit_code = status == -1        ? -1
                          : WIFEXITED(status) ? WEXITSTATUS(status)
                                              : 128 + WTERMSIG(status);
      outcome.text = text_of(log_of(i));
      outcomes.push_back(outcome);
    }
    return outcomes;
  }

  /// Ranks of a scenario of worker_test.cpp, with a store that rank 0 keeps.
  std::vector<Outcome> ranks(int count, std::vector<std::string> scenario) const {
    scenario.insert(scenario.begin(), {program(), "worker"});
    const std::string port = std::to_string(free_port());
    std::vector<Command> commands;
    for (int rank = 0; rank < count; ++rank) {
      const std::string number = std::to_string(rank);
      commands.push_back(
          {scenario,
           {"RANK=" + number, "LOCAL_RANK=" + number, "WORLD_SIZE=" + std::to_string(count),
            "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + port, "OMP_NUM_THREADS=1"}});
    }
    return run(commands);
  }

  /// A program under torchrun.
  Outcome torchrun(int count, std::vector<std::string> words) const {
    std::vector<std::string> line = torchrun_words();
    for (const std::string& word : {std::string("--standalone"), std::string("--no-python"),
                                    "--nproc-per-node=" + std::to_string(count)})
      line.push_back(word);
    line.insert(line.end(), words.begin(), words.end());
    return run({{line, {"OMP_NUM_THREADS=1"}}}).front();
  }

  /// That beside the LibTorch of the build, or of another machine's Python.
  static std::vector<std::string> torchrun_words() {
    if (fs::exists(FOREBAY_TORCHRUN)) return {FOREBAY_TORCHRUN};
    return {"python3", "-m", "torch.distributed.run"};
  }

  static std::string program() { return fs::read_symlink("/proc/self/exe").string(); }
  static std::string command() {
    const fs::path here = fs::path(program()).parent_path();
    return (fs::exists(here / "forebay") ? here / "forebay" : here / "../bin/forebay").string();
  }
  std::string text_of(const std::string& path) const {
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }

  static constexpr std::int64_t kSamples = 62;
  static constexpr auto kLongest = 60s;
  const std::string folder_ = kit::temporary_folder();

 private:
  std::string log_of(std::size_t i) const { return folder_ + "/log." + std::to_string(i); }

  pid_t start(Command command, const std::string& log) const {
    const pid_t child = fork();
    if (child != 0) return child;
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (std::string& variable : command.environment)
      putenv(variable.data());
    std::vector<char*> words;
    for (std::string& word : command.words)
      words.push_back(word.data());
    words.push_back(nullptr);
    const int file = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (chdir(folder_.c_str()) == 0 && dup2(file, 1) == 1 && dup2(file, 2) == 2)
      execvp(words[0], words.data());
    _exit(127);
  }
};

}  // namespace forebay::test
