#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <forebay/pipeline/fit.h>

namespace forebay::cli {

/// Exit codes of the command.
enum Exit : int {
  kOk = 0,
  kFailed = 1,  ///< something is wrong with the file, the data or the device; said on stderr
  kUsage = 2,   ///< the command line is wrong
};

/// What only `fit` takes.
struct FitArguments {
  FitSettings settings;
  FitReportSettings report;
  std::int64_t after = 0;              ///< stages
  std::optional<std::string> output;   ///< the file of statistics
  std::optional<std::string> partial;  ///< the file of the state
  bool resume = false;                 ///< from it
  double every = FitHooks{}.state_seconds;
  std::optional<std::string> shard;  ///< "0/3"
  std::vector<std::string> merge;    ///< files of states
};

/// A command line, understood.
struct Arguments {
  enum class Command { check, plan, run, fit, explain, ops, schema };
  Command command = Command::check;
  std::string file;                     ///< check, plan, run, fit
  std::string subject;                  ///< explain: an op or a key
  std::optional<std::string> device;    ///< check, plan, run, fit: overrides the file's
  std::optional<std::int64_t> batches;  ///< run: at most so many in all
  std::optional<std::int64_t> epochs;   ///< run
  std::optional<std::string> save;      ///< run: the folder
  std::optional<std::string> dump;      ///< plan: the folder for kernels
  bool json = false;                    ///< run, fit
  std::optional<std::string> state;     ///< run: the file
  bool allow_changes = false;           ///< run, with a state
  FitArguments fit;
};

/// No value when there is nothing left to do: help was asked for (`exit_code` 0) or the line is
/// wrong (2); the text has then been printed.
std::optional<Arguments> parse_arguments(int count, char** values, int& exit_code);

}  // namespace forebay::cli
