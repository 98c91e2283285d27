#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace forebay::cli {

/// Exit codes of the command.
enum Exit : int {
  kOk = 0,
  kFailed = 1,  ///< something is wrong with the file, the data or the device; said on stderr
  kUsage = 2,   ///< the command line is wrong
};

/// A command line, understood.
struct Arguments {
  enum class Command { check, plan, run, explain, ops, schema };
  Command command = Command::check;
  std::string file;                     ///< check, plan, run
  std::string subject;                  ///< explain: an op or a key
  std::optional<std::string> device;    ///< check, plan, run: overrides the file's
  std::optional<std::int64_t> batches;  ///< run: at most so many in all
  std::optional<std::int64_t> epochs;   ///< run
  std::optional<std::string> save;      ///< run: the folder
  std::optional<std::string> dump;      ///< plan: the folder for kernels
  bool json = false;                    ///< run
};

/// No value when there is nothing left to do: help was asked for (`exit_code` 0) or the line is
/// wrong (2); the text has then been printed.
std::optional<Arguments> parse_arguments(int count, char** values, int& exit_code);

}  // namespace forebay::cli
