#pragma once

// Internal: the steps of a plan while it is being made, as expressions over plan values, and
// how they fuse.

#include <map>
#include <string>
#include <vector>

#include <forebay/pipeline/plan.h>

namespace forebay {

/// A step that is not final: others may still become part of it.
struct Draft {
  PlanStep step;  ///< kind, device, outputs, stages; copies have their inputs, too
  std::vector<expr::Expr> inputs = {};  ///< kernel: each input of its op
  /// Pointwise: each output; kernel: the epilogue, if any, which reads the op's result as the value
  /// that it replaces.
  std::vector<expr::Expr> results = {};
  Fusion fuses = {};  ///< kernel: what its body takes in
};

/// The drafts of one plan. Values are plan values: `values` is the plan's own list.
class Drafts {
 public:
  Drafts(std::vector<PlanValue>& values, bool fuse) : values_(values), fuse_(fuse) {}

  void add(Draft draft) { drafts_.push_back(std::move(draft)); }
  /// Why `value` is written to memory, said in the notes if it still is at the end.
  void explain(int value, std::string why) { reasons_[value] = std::move(why); }
  std::size_t size() const { return drafts_.size(); }

  /// Makes `result`, the work of `stages`, the epilogue of the kernel that computes value `of`, and
  /// `of` the value of the result. False, with nothing done, where that cannot be: `of` has to be
  /// read by nothing else, each element of the result must come from the one at the same place, and
  /// the kernel must take an epilogue.
  bool append_to_kernel(int of, const expr::Expr& result, const std::vector<int>& stages);

  /// Merges pointwise steps of one shape that share what they read, or of which one reads
  /// the other's result; drops what nobody reads any more; returns the steps, in order, and
  /// adds the notes.
  std::vector<PlanStep> finish(const std::vector<int>& delivered, std::vector<std::string>& notes);

 private:
  void merge_pointwise();
  bool merge(std::size_t first, std::size_t second);
  void drop_unread(const std::vector<int>& delivered);
  bool reads(const Draft& draft, int value) const;
  int base_of(int value) const;
  void finish_pointwise(Draft& draft) const;
  void finish_kernel(Draft& draft) const;

  std::vector<PlanValue>& values_;
  bool fuse_;
  std::vector<Draft> drafts_;
  std::map<int, std::string> reasons_;
};

/// The plan values that an expression reads, each once, in the order of first use.
std::vector<int> sources_of(const expr::Expr& expression);

/// Whether every element that `expression` reads of `value` is the one at its own place.
bool reads_in_place(const expr::Expr& expression, int value, const Dims& shape);

}  // namespace forebay
