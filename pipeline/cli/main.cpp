#include <cstdio>
#include <exception>

#include <forebay/array/error.h>
#include <forebay/pipeline/cli/commands.h>

namespace {

int dispatch(const forebay::cli::Arguments& arguments) {
  using namespace forebay;
  using Command = cli::Arguments::Command;
  switch (arguments.command) {
    case Command::check:
      return cli::check(arguments);
    case Command::plan:
      return cli::plan(arguments);
    case Command::run:
      return cli::run(arguments);
    case Command::fit:
      return cli::fit(arguments);
    case Command::explain:
      return cli::explain(arguments);
    case Command::ops:
      return cli::ops(arguments);
    case Command::schema:
      return cli::schema(arguments);
  }
  return cli::kUsage;
}

}  // namespace

int main(int argc, char** argv) {
  int exit_code = 0;
  const auto arguments = forebay::cli::parse_arguments(argc, argv, exit_code);
  if (!arguments) return exit_code;
  try {
    return dispatch(*arguments);
  } catch (const std::exception& error) {
    std::fflush(stdout);
    std::fprintf(stderr, "%s\n", error.what());
    return forebay::cli::kFailed;
  }
}
