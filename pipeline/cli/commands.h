#pragma once

#include <string>
#include <vector>

#include <forebay/array/stream.h>
#include <forebay/pipeline/cli/arguments.h>
#include <forebay/pipeline/spec.h>

namespace forebay::cli {

// Each returns an exit code, and throws Error for what is wrong with its input.
int check(const Arguments& arguments);
int plan(const Arguments& arguments);
int run(const Arguments& arguments);
int fit(const Arguments& arguments);
int explain(const Arguments& arguments);
int ops(const Arguments& arguments);
int schema(const Arguments& arguments);

enum class Notes : std::uint8_t { printed, left_out };

/// The spec that the arguments ask for, of all stages or so many; notes go to stderr.
Spec load(const Arguments& arguments, Presence presence, std::optional<std::int64_t> stages = {},
          Notes notes = Notes::printed);

/// Columns under a line of titles, as wide as their widest cell.
std::string table(const std::vector<std::string>& titles,
                  const std::vector<std::vector<std::string>>& rows);

}  // namespace forebay::cli
