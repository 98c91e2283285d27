#pragma once

// What the tests of the command share: a folder with a pipeline, and runs of the command in it.

#include <filesystem>
#include <fstream>
#include <sstream>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <forebay/pipeline/source.h>

#include "kit/kit.h"

namespace forebay::test {

namespace fs = std::filesystem;

/// The command: beside this program in a build tree, in ../bin of an install tree.
inline std::string command() {
  const fs::path here = fs::read_symlink("/proc/self/exe").parent_path();
  for (const fs::path& path : {here / "forebay", here / "../bin/forebay"}) {
    if (fs::exists(path)) return path.string();
  }
  return (here / "forebay").string();
}

inline std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

struct Outcome {
  int exit_code = -1;
  std::string out, err;
};

class Cli : public testing::Test {
 protected:
  void SetUp() override {
    write_npy(folder_ + "/x.npy", x_.view());
    write_npy(folder_ + "/y.npy", y_.view());
    write("train.yaml",
          "version: 1\n"
          "batch_size: 4\n"
          "device: cpu\n"
          "source: {type: npy, columns: {x: x.npy, y: y.npy}}\n"
          "stages:\n"
          "  - {op: clip, min: -1, max: 1}\n");
  }

  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ + "/" + name) << text;
    return folder_ + "/" + name;
  }

  /// Starts the command in the test's folder. `environment`: "RANK=1" and the like, to be added.
  pid_t start(std::vector<std::string> arguments, int output, int errors,
              std::vector<std::string> environment = {}) {
    arguments.insert(arguments.begin(), command());
    std::vector<char*> values;
    for (std::string& argument : arguments)
      values.push_back(argument.data());
    values.push_back(nullptr);
    const pid_t child = fork();
    if (child == 0) {
      for (std::string& variable : environment)
        putenv(variable.data());
      const bool ready =
          chdir(folder_.c_str()) == 0 && dup2(output, 1) == 1 && dup2(errors, 2) == 2;
      if (ready) execv(values[0], values.data());
      _exit(127);
    }
    return child;
  }

  /// Runs the command in the test's folder. `terminal`: its stderr is one.
  Outcome forebay(std::vector<std::string> arguments, bool terminal = false) {
    const std::string out = folder_ + "/stdout", err = folder_ + "/stderr";
    // The child's end is open before the child is: without one, reading the other end fails at
    // once.
    const int master = terminal ? posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC) : -1;
    if (terminal && (grantpt(master) != 0 || unlockpt(master) != 0)) return {};
    const int errors = terminal ? open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC)
                                : open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    const int output = open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    const pid_t child = start(std::move(arguments), output, errors);
    close(output);
    close(errors);
    Outcome outcome;
    if (terminal) {
      // Fails when the last writer is gone; a terminal without a reader would block the program.
      char buffer[4096];
      for (ssize_t count; (count = read(master, buffer, sizeof buffer)) > 0;) {
        outcome.err.append(buffer, static_cast<std::size_t>(count));
      }
      close(master);
    }
    int status = 0;
    waitpid(child, &status, 0);
    outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    outcome.out = text_of(out);
    if (!terminal) outcome.err = text_of(err);
    return outcome;
  }

  const std::string folder_ = kit::temporary_folder();
  const Array x_ = kit::random({10, 3}, Dtype::f32, 1);
  const Array y_ = kit::random({10}, Dtype::i64, 2, 0, 9);
};

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace forebay::test
