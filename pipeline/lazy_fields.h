#pragma once

// Internal: the fields of a plan that is being made. Each is an expression over plan values until
// somebody needs it in memory.

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <forebay/pipeline/dataflow.h>
#include <forebay/pipeline/draft.h>

namespace forebay {

/// A version of a field, computed when somebody needs it in memory.
struct Lazy {
  ArraySpec spec = {};
  expr::Expr expr = {};  ///< invalid when nobody needs it
  Device device = {};
  std::vector<int> pending = {};  ///< stages whose work the expression holds
};

class LazyFields {
 public:
  /// Steps go to `drafts`, values to the plan.
  LazyFields(const Dataflow& flow, Plan& plan, Drafts& drafts)
      : flow_(flow),
        plan_(plan),
        drafts_(drafts),
        lazies_(flow.versions.size()),
        taken_(flow.versions.size()) {}

  Lazy& operator[](int version) { return lazies_[static_cast<std::size_t>(version)]; }
  /// One of the version's readers has what it needs.
  void take(int version) { ++taken_[static_cast<std::size_t>(version)]; }

  int add_value(PlanValue value);
  expr::Expr leaf(int value) const;
  /// The value on `device` that every batch brings: its sample ids or its position.
  int batch_info(PlanValue::Kind kind, Device device);
  /// The value whose memory `value` is.
  int base_of(int value) const;

  /// The plan value that the expression is, as it is; nothing when it has to be computed.
  std::optional<int> memory(const expr::Expr& expression) const;
  /// The value that holds `lazy`, which becomes a leaf: a step computes it when it is not in
  /// memory as it is.
  int dense(Lazy& lazy, const std::string& name);
  /// The version on `device`: as it is, or a copy that all readers there share.
  Lazy on(int version, Device device);
  /// Between two kernel ops, the work goes to the one that makes what lies between them smaller:
  /// true when that is the one before, of which `lazy` then is the result.
  bool append_where_smaller(Lazy& lazy);

  /// Columns that travel to the GPU, and their values there.
  const std::vector<std::pair<int, int>>& loaded() const { return loaded_; }

 private:
  bool is_last_reader(const Lazy& lazy, int value) const;
  bool append_to_kernel(int of, Lazy& lazy);

  const Dataflow& flow_;
  Plan& plan_;
  Drafts& drafts_;
  std::vector<Lazy> lazies_;   // by version
  std::vector<int> taken_;     // how often each was read so far
  std::map<int, int> copies_;  // value -> the same on the other device
  std::vector<std::pair<int, int>> loaded_;
};

}  // namespace forebay
