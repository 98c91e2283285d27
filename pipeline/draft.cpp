#include <forebay/pipeline/draft.h>

#include <algorithm>

#include <forebay/array/require.h>
#include <forebay/pipeline/memory_map.h>

namespace forebay {
namespace {

// That one kernel reads and writes: its parameters are limited.
constexpr std::size_t kMostArrays = 24;

std::size_t index(int i) { return static_cast<std::size_t>(i); }

bool contains(const std::vector<int>& list, int value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

void unite(std::vector<int>& list, const std::vector<int>& more) {
  list.insert(list.end(), more.begin(), more.end());
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

/// `expression` with source `numbers[i]` called `first + i`.
expr::Expr renumber(const expr::Expr& expression, const std::vector<int>& numbers, int first) {
  std::vector<expr::Expr> sources;
  for (const expr::Program::Leaf& leaf : expr::compile({&expression, 1}).leaves) {
    if (leaf.source < 0) continue;
    const auto place = std::find(numbers.begin(), numbers.end(), leaf.source) - numbers.begin();
    if (index(leaf.source) >= sources.size()) sources.resize(index(leaf.source) + 1);
    // The shape does not matter: a leaf keeps its own layout over dense memory.
    sources[index(leaf.source)] =
        expr::Expr::leaf(first + static_cast<int>(place), leaf.dtype, Dims{1});
  }
  return expr::substitute(expression, sources);
}

}  // namespace

std::vector<int> sources_of(const expr::Expr& expression) {
  std::vector<int> result;
  for (const expr::Program::Leaf& leaf : expr::compile({&expression, 1}).leaves) {
    if (leaf.source >= 0 && !contains(result, leaf.source)) result.push_back(leaf.source);
  }
  return result;
}

bool reads_in_place(const expr::Expr& expression, int value, const Dims& shape) {
  if (expression.shape() != shape) return false;
  const expr::Program program = expr::compile({&expression, 1});
  Dims dense = dense_strides(shape);
  for (int axis = 0; axis < shape.rank; ++axis) {
    if (shape[axis] <= 1) dense[axis] = 0;
  }
  return std::all_of(program.leaves.begin(), program.leaves.end(), [&](const auto& leaf) {
    return leaf.source != value || (leaf.offset == 0 && leaf.strides == dense);
  });
}

int Drafts::base_of(int value) const {
  const PlanValue& v = values_[index(value)];
  return v.kind == PlanValue::Kind::view ? v.base : value;
}

/// Whether the draft reads the memory of `value`, by itself or through a view.
bool Drafts::reads(const Draft& draft, int value) const {
  const auto any = [&](const std::vector<int>& numbers) {
    return std::any_of(numbers.begin(), numbers.end(),
                       [&](int number) { return base_of(number) == value; });
  };
  const auto any_source = [&](const expr::Expr& e) { return any(sources_of(e)); };
  return any(draft.step.inputs) ||
         std::any_of(draft.inputs.begin(), draft.inputs.end(), any_source) ||
         std::any_of(draft.results.begin(), draft.results.end(), any_source);
}

bool Drafts::append_to_kernel(int of, const expr::Expr& result, const std::vector<int>& stages) {
  if (!fuse_) return false;
  const auto kernel = std::find_if(drafts_.begin(), drafts_.end(), [&](const Draft& draft) {
    return draft.step.kind == PlanStep::Kind::kernel && draft.step.outputs[0] == of;
  });
  if (kernel == drafts_.end() || !kernel->fuses.epilogue || !kernel->results.empty()) return false;
  PlanValue& value = values_[index(of)];
  if (!reads_in_place(result, of, value.spec.shape)) return false;
  const bool read_elsewhere =
      std::any_of(drafts_.begin(), drafts_.end(), [&](const Draft& d) { return reads(d, of); }) ||
      std::any_of(values_.begin(), values_.end(), [&](const PlanValue& v) {
        return v.kind == PlanValue::Kind::view && v.base == of;
      });
  if (read_elsewhere) return false;
  kernel->results = {result};
  unite(kernel->step.stages, stages);
  value.spec = {result.dtype(), result.shape()};
  // What else the epilogue reads may have been computed behind the kernel.
  std::rotate(kernel, kernel + 1, drafts_.end());
  return true;
}

void Drafts::merge_pointwise() {
  for (std::size_t second = 1; second < drafts_.size(); ++second) {
    for (std::size_t first = 0; first < second; ++first) {
      if (merge(first, second)) {
        second = 0;  // what has grown may merge with what did not fit before
        break;
      }
    }
  }
}

/// Makes two pointwise drafts one, in the place of the first or of the second.
bool Drafts::merge(std::size_t first, std::size_t second) {
  Draft& a = drafts_[first];
  Draft& b = drafts_[second];
  if (a.step.kind != PlanStep::Kind::pointwise || b.step.kind != PlanStep::Kind::pointwise)
    return false;
  if (a.step.device != b.step.device || a.results[0].shape() != b.results[0].shape()) return false;

  bool related = false;
  std::vector<int> read_by_a;
  for (const expr::Expr& result : a.results)
    unite(read_by_a, sources_of(result));
  std::vector<expr::Expr> through(values_.size());
  for (std::size_t v = 0; v < values_.size(); ++v)
    through[v] =
        expr::Expr::leaf(static_cast<int>(v), values_[v].spec.dtype, values_[v].spec.shape);
  // What every batch brings is no work in common.
  const auto is_data = [&](int value) {
    const PlanValue::Kind kind = values_[index(value)].kind;
    return kind != PlanValue::Kind::sample_ids && kind != PlanValue::Kind::position;
  };
  for (const expr::Expr& result : b.results) {
    for (const int source : sources_of(result)) {
      related |= contains(read_by_a, source) && is_data(source);
      const auto made = std::find(a.step.outputs.begin(), a.step.outputs.end(), base_of(source));
      if (made == a.step.outputs.end()) continue;
      if (source != *made || !reads_in_place(result, source, a.results[0].shape())) return false;
      related = true;
      through[index(source)] = a.results[static_cast<std::size_t>(made - a.step.outputs.begin())];
    }
  }
  if (!related || read_by_a.size() + a.results.size() + b.results.size() > kMostArrays)
    return false;

  // Nothing between them may make what b reads, if b moves up; or read what a makes, if a
  // moves down.
  const auto between = [&](const auto& blocks) {
    return std::any_of(drafts_.begin() + static_cast<std::ptrdiff_t>(first) + 1,
                       drafts_.begin() + static_cast<std::ptrdiff_t>(second), blocks);
  };
  const bool up = !between([&](const Draft& draft) {
    return std::any_of(draft.step.outputs.begin(), draft.step.outputs.end(),
                       [&](int value) { return value >= 0 && reads(b, value); });
  });
  const bool down = !between([&](const Draft& draft) {
    return std::any_of(a.step.outputs.begin(), a.step.outputs.end(),
                       [&](int value) { return reads(draft, value); });
  });
  if (!up && !down) return false;
  for (std::size_t k = 0; k < b.results.size(); ++k) {
    a.results.push_back(expr::substitute(b.results[k], through));
    a.step.outputs.push_back(b.step.outputs[k]);
  }
  unite(a.step.stages, b.step.stages);
  if (up) {
    drafts_.erase(drafts_.begin() + static_cast<std::ptrdiff_t>(second));
  } else {
    drafts_[second] = std::move(a);
    drafts_.erase(drafts_.begin() + static_cast<std::ptrdiff_t>(first));
  }
  return true;
}

/// What merging left without a reader is not written.
void Drafts::drop_unread(const std::vector<int>& delivered) {
  for (Draft& draft : drafts_) {
    if (draft.step.kind != PlanStep::Kind::pointwise) continue;
    for (std::size_t k = draft.results.size(); k-- > 0 && draft.results.size() > 1;) {
      const int value = draft.step.outputs[k];
      const bool read = contains(delivered, value) ||
                        std::any_of(drafts_.begin(), drafts_.end(),
                                    [&](const Draft& other) { return reads(other, value); });
      if (read) continue;
      draft.results.erase(draft.results.begin() + static_cast<std::ptrdiff_t>(k));
      draft.step.outputs.erase(draft.step.outputs.begin() + static_cast<std::ptrdiff_t>(k));
      reasons_.erase(value);
    }
  }
}

void Drafts::finish_pointwise(Draft& draft) const {
  std::vector<int> sources;
  for (const expr::Expr& result : draft.results) {
    for (const int source : sources_of(result)) {
      if (!contains(sources, source)) sources.push_back(source);
    }
  }
  std::vector<expr::Expr> results;
  for (const expr::Expr& result : draft.results)
    results.push_back(renumber(result, sources, 0));
  draft.step.inputs = sources;
  draft.step.program = expr::compile(results);
}

void Drafts::finish_kernel(Draft& draft) const {
  Problem& problem = draft.step.problem;
  std::vector<int> sources;
  bool plain = true;
  for (const expr::Expr& input : draft.inputs) {
    const expr::Node& node = *input.node();
    plain &= expr::is_dense_leaf(input) && node.source >= 0 &&
             values_[index(node.source)].spec == ArraySpec{input.dtype(), input.shape()};
    for (const int source : sources_of(input)) {
      if (!contains(sources, source)) sources.push_back(source);
    }
  }
  if (plain) {
    sources.clear();
    for (const expr::Expr& input : draft.inputs)
      sources.push_back(input.node()->source);
  }
  for (const expr::Expr& input : draft.inputs) {
    if (!plain) problem.prologue.push_back(renumber(input, sources, 0));
  }
  if (!draft.results.empty()) {
    const int result = draft.step.outputs[0];
    std::vector<int> numbers{result};
    for (const int source : sources_of(draft.results[0])) {
      if (source != result && !contains(sources, source)) sources.push_back(source);
    }
    numbers.insert(numbers.end(), sources.begin(), sources.end());
    problem.epilogue = renumber(draft.results[0], numbers, 0);
  }
  draft.step.inputs = sources;
}

std::vector<PlanStep> Drafts::finish(const std::vector<int>& delivered,
                                     std::vector<std::string>& notes) {
  if (fuse_) merge_pointwise();
  drop_unread(delivered);
  std::vector<PlanStep> steps;
  for (Draft& draft : drafts_) {
    if (draft.step.kind == PlanStep::Kind::pointwise) finish_pointwise(draft);
    if (draft.step.kind == PlanStep::Kind::kernel) finish_kernel(draft);
    for (const int value : draft.step.outputs) {
      const auto reason = reasons_.find(value);
      if (reason != reasons_.end()) notes.push_back(reason->second);
    }
    steps.push_back(std::move(draft.step));
  }
  return steps;
}

}  // namespace forebay
