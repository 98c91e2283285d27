#pragma once

// Internal: names become data flow. Writing a field makes a new version of it; stages read
// versions.

#include <string>
#include <utility>
#include <vector>

#include <forebay/pipeline/mistakes.h>

namespace forebay {

struct Dataflow {
  struct Version {
    std::string name;
    int writer = -1;           ///< stage number; -1: the source
    std::vector<int> readers;  ///< stages that are needed for the output, each once
    bool output = false;
    bool known = true;  ///< false behind a mistake, so that it is reported once
    bool needed() const { return output || !readers.empty(); }
    int uses() const { return static_cast<int>(readers.size()) + (output ? 1 : 0); }
  };
  struct Stage {
    std::vector<int> inputs;   ///< version numbers; -1 for a name that does not exist
    std::vector<int> outputs;  ///< version numbers
    bool needed = false;       ///< the output depends on it
  };
  std::vector<Version> versions;  ///< the columns come first
  std::vector<Stage> stages;
  std::vector<std::pair<std::string, int>> outputs;  ///< fields of the batch and their versions
};

/// Applies the rule: a stage reads the field that the stage before it wrote (the first one: the
/// first column), or those it names; it rebinds the name it read, or writes those it names. `spec`
/// has a source.
Dataflow resolve_fields(const Spec& spec, Mistakes& mistakes);

}  // namespace forebay
