#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace forebay::cli {

/// Shows on stderr how far a run is: a bar that is drawn over on a terminal, else a line an epoch
/// and one every ten seconds.
class Progress {
 public:
  enum class Unit : std::uint8_t { batches, samples };
  /// `total`: batches that will come, in all; or samples, of one epoch.
  explicit Progress(std::int64_t total, Unit unit = Unit::batches);
  ~Progress();

  void on_batch(std::int64_t epoch, std::int64_t rows);
  void on_epoch_end();

 private:
  using Clock = std::chrono::steady_clock;
  void print_line();
  void draw_bar();
  double rate() const;
  std::int64_t done() const { return unit_ == Unit::batches ? batches_ : samples_; }
  std::string text() const;

  std::int64_t total_;
  Unit unit_;
  bool terminal_;
  std::int64_t epoch_ = 0, batches_ = 0, samples_ = 0;
  Clock::time_point begin_ = Clock::now(), shown_ = begin_;
  bool drawn_ = false;
};

/// From now on a line on stderr for each kernel that is compiled.
void say_what_is_compiled();

}  // namespace forebay::cli
