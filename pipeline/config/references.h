#pragma once

#include <map>
#include <string>

#include <forebay/ops/op.h>
#include <forebay/pipeline/config/node.h>
#include <forebay/pipeline/config/report.h>

// Settings that `forebay fit` has found: `mean: stats.yaml#image.mean` is the value of `mean` in
// the map `image` of stats.yaml.
namespace forebay::config {

/// What references of one file refer to. Each file of statistics is read once.
class References {
 public:
  /// Paths in references are relative to `folder`.
  explicit References(std::string folder) : folder_(std::move(folder)) {}

  /// Has a `#` within.
  static bool is_reference(const Node& node);
  /// What `reference` names, with its own position. Errors: io for a file that cannot be read;
  /// invalid for one that is no map, and for a name that is not there, with the nearest one.
  Node resolve(const Node& reference);

 private:
  std::string folder_;
  std::map<std::string, Node> files_;
};

/// `stage` with what the references in it refer to, for settings of `def` that are numbers and
/// for entries of their lists. What is wrong goes to `report`, behind `title`.
Node with_statistics(const Node& stage, const OpDef& def, const std::string& title,
                     References& references, Report& report);

}  // namespace forebay::config
