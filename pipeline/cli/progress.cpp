#include <forebay/pipeline/cli/progress.h>

#include <algorithm>
#include <string>

#include <fmt/core.h>
#include <unistd.h>

#include <forebay/array/cuda/kernel.h>

namespace forebay::cli {

using std::chrono::duration;

Progress::Progress(std::int64_t total, Unit unit)
    : total_(total), unit_(unit), terminal_(isatty(STDERR_FILENO) == 1) {}

/// An error message that follows starts on a line of its own.
Progress::~Progress() {
  if (drawn_) std::fputs("\n", stderr);
}

double Progress::rate() const {
  const double seconds = duration<double>(Clock::now() - begin_).count();
  return seconds > 0 ? static_cast<double>(samples_) / seconds : 0;
}

void Progress::on_batch(std::int64_t epoch, std::int64_t rows) {
  epoch_ = epoch;
  ++batches_;
  samples_ += rows;
  const double since = duration<double>(Clock::now() - shown_).count();
  if (terminal_ ? since > 0.1 || done() == total_ : since > 10) {
    shown_ = Clock::now();
    terminal_ ? draw_bar() : print_line();
  }
}

void Progress::on_epoch_end() {
  if (!terminal_) print_line();
}

std::string Progress::text() const {
  return fmt::format("{} of {} {}, {:.0f} samples/s", done(), total_,
                     unit_ == Unit::batches ? "batches" : "samples", rate());
}

void Progress::print_line() {
  const std::string epoch = unit_ == Unit::batches ? fmt::format("epoch {}: ", epoch_) : "";
  fmt::print(stderr, "{}{}\n", epoch, text());
}

void Progress::draw_bar() {
  constexpr std::int64_t kWidth = 30;
  const auto full =
      static_cast<std::size_t>(total_ > 0 ? std::min(kWidth, done() * kWidth / total_) : 0);
  const std::string epoch = unit_ == Unit::batches ? fmt::format("epoch {}, ", epoch_) : "";
  // Erases what a longer line before it left.
  fmt::print(stderr, "\r[{}{}] {}{}\033[K", std::string(full, '#'), std::string(kWidth - full, '.'),
             epoch, text());
  std::fflush(stderr);
  drawn_ = true;
}

void say_what_is_compiled() {
  cuda::observe_compilation([](const std::string& name, int architecture) {
    fmt::print(stderr, "compiling kernel {} for sm_{}, once on this machine\n", name, architecture);
  });
}

}  // namespace forebay::cli
