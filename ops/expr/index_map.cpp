#include <algorithm>
#include <functional>
#include <optional>
#include <unordered_map>

#include <forebay/array/require.h>
#include <forebay/ops/expr/expression.h>

// Index maps rewrite the leaves and leave the arithmetic as it is: nothing is ever computed twice
// or copied.
namespace forebay::expr {
namespace {

using NodePtr = std::shared_ptr<const Node>;
using EndMap = std::function<Expr(const NodePtr&)>;

/// `a` with each leaf and constant replaced; a node that several others use is rewritten once.
class Rewriter {
 public:
  explicit Rewriter(EndMap end) : end_(std::move(end)) {}

  Expr operator()(const Expr& a) {
    const auto found = done_.find(a.node());
    if (found != done_.end()) return found->second;
    const Expr result = rewrite(a.shared());
    done_.emplace(a.node(), result);
    return result;
  }

 private:
  Expr rewrite(const NodePtr& node) {
    if (node->opcode == Opcode::leaf || node->opcode == Opcode::constant) return end_(node);
    auto result = std::make_shared<Node>(*node);
    for (Expr& arg : result->args) {
      if (arg.valid()) arg = (*this)(arg);
    }
    result->shape = result->args[0].shape();
    return Expr(std::move(result));
  }

  EndMap end_;
  std::unordered_map<const Node*, Expr> done_;
};

/// Axes of a leaf as a view without memory, for the view algebra of array/.
ArrayView axes_of(const Node& node) {
  return {nullptr, node.dtype, Device::cpu(), node.shape, node.strides};
}

Expr with_axes(const Node& node, const Dims& shape, const Dims& strides, std::int64_t offset) {
  auto result = std::make_shared<Node>(node);
  result->shape = shape;
  result->strides = strides;
  result->offset = offset;
  return Expr(std::move(result));
}

/// `a` with the axes of each leaf changed by `change`, a function of views that moves no data
/// pointer.
template <class Change>
Expr map_axes(const Expr& a, const Change& change) {
  Dims zeros;
  zeros.rank = a.shape().rank;
  const Dims shape = change(ArrayView{nullptr, a.dtype(), Device::cpu(), a.shape(), zeros}).shape;
  Rewriter rewriter([&](const NodePtr& node) {
    if (node->opcode == Opcode::constant) return with_axes(*node, shape, {}, 0);
    return with_axes(*node, shape, change(axes_of(*node)).strides, node->offset);
  });
  return rewriter(a);
}

/// Calls `check` for each leaf until it says no.
bool all_leaves(const Expr& a, const std::function<bool(const Node&)>& check) {
  bool all = true;
  Rewriter walk([&](const NodePtr& node) {
    all = all && (node->opcode != Opcode::leaf || check(*node));
    return Expr(node);
  });
  walk(a);
  return all;
}

/// The index, axis by axis, of element `position` in a dense array of `shape`.
Dims unravel(std::int64_t position, const Dims& shape) {
  Dims index = shape;
  for (int axis = shape.rank - 1; axis >= 0; --axis) {
    index[axis] = position % shape[axis];
    position /= shape[axis];
  }
  return index;
}

/// Where a leaf's axes lead in the index space of the dense array that it addresses: index = start
/// + sum of (position on leaf axis i) * steps[i].
struct IndexMap {
  Dims start;
  std::vector<Dims> steps;
};

/// The map of a leaf over a dense array of `shape`; nothing for a leaf that merged axes of `shape`.
std::optional<IndexMap> find_index_map(const Node& leaf, const Dims& shape) {
  const std::int64_t count = count_of(shape);
  if (leaf.offset < 0 || leaf.offset >= count) return {};
  IndexMap map;
  map.start = unravel(leaf.offset, shape);
  Dims low = map.start, high = map.start;
  for (int axis = 0; axis < leaf.shape.rank; ++axis) {
    Dims step = shape;
    for (std::int64_t& value : step)
      value = 0;
    if (leaf.shape[axis] > 1) {
      const std::int64_t next = leaf.offset + leaf.strides[axis];
      if (next < 0 || next >= count) return {};
      const Dims index = unravel(next, shape);
      for (int k = 0; k < shape.rank; ++k) {
        step[k] = index[k] - map.start[k];
        (step[k] < 0 ? low : high)[k] += step[k] * (leaf.shape[axis] - 1);
      }
    }
    map.steps.push_back(step);
  }
  for (int k = 0; k < shape.rank; ++k) {
    if (low[k] < 0 || high[k] >= shape[k]) return {};
  }
  return map;
}

/// `a` read through `map`, with the axes of the leaf that the map is of.
Expr apply(const Expr& a, const IndexMap& map, const Dims& shape) {
  Rewriter rewriter([&](const NodePtr& node) {
    if (node->opcode == Opcode::constant) return with_axes(*node, shape, {}, 0);
    std::int64_t offset = node->offset;
    for (int k = 0; k < map.start.rank; ++k)
      offset += map.start[k] * node->strides[k];
    Dims strides = shape;
    for (int axis = 0; axis < shape.rank; ++axis) {
      strides[axis] = 0;
      for (int k = 0; k < map.start.rank; ++k) {
        strides[axis] += map.steps[static_cast<std::size_t>(axis)][k] * node->strides[k];
      }
    }
    return with_axes(*node, shape, strides, offset);
  });
  return rewriter(a);
}

/// What stands for `leaf` when its source is the expression `source` instead of memory.
Expr read_through(const Node& leaf, const Expr& source) {
  FOREBAY_REQUIRE(leaf.dtype == source.dtype(), invalid,
                  "substitute: source {} has dtype {}, not {}.", leaf.source,
                  name_of(source.dtype()), name_of(leaf.dtype));
  if (leaf.offset == 0 && leaf.shape == source.shape() && is_dense(leaf.shape, leaf.strides))
    return source;
  if (is_dense_leaf(source)) {
    auto result = std::make_shared<Node>(*source.node());
    result->shape = leaf.shape;
    result->strides = leaf.strides;
    result->offset = leaf.offset;
    return Expr(std::move(result));
  }
  if (count_of(leaf.shape) == 0) return broadcast_to(Expr::constant(0, leaf.dtype), leaf.shape);
  if (const auto map = find_index_map(leaf, source.shape())) return apply(source, *map, leaf.shape);
  const Dims flat{count_of(source.shape())};
  if (can_reshape(source, flat)) {
    if (const auto map = find_index_map(leaf, flat))
      return apply(reshape(source, flat), *map, leaf.shape);
  }
  fail(
      ErrorKind::unsupported,
      "substitute: the layout of source {} {} does not allow its index map. Materialise it before.",
      leaf.source, to_string(source.shape()));
}

}  // namespace

Expr permute(const Expr& a, const Dims& axes) {
  return map_axes(a, [&](const ArrayView& view) { return forebay::permute(view, axes); });
}

Expr broadcast_to(const Expr& a, const Dims& shape) {
  if (a.shape() == shape) return a;
  return map_axes(a, [&](const ArrayView& view) { return forebay::broadcast_to(view, shape); });
}

Expr slice(const Expr& a, int axis, std::int64_t start, std::int64_t stop, std::int64_t step) {
  const Dims& shape = a.shape();
  const int k = resolve_axis(axis, shape.rank);
  FOREBAY_REQUIRE(step != 0, invalid, "slice: `step` is 0; it must not be.");
  const std::int64_t extent = shape[k];
  const auto clamped = [&](std::int64_t index) {
    const std::int64_t low = step > 0 ? 0 : -1;
    const std::int64_t high = step > 0 ? extent : extent - 1;
    return std::clamp(index < 0 ? index + extent : index, low, high);
  };
  const std::int64_t first = clamped(start), last = clamped(stop);
  const std::int64_t count =
      step > 0 ? (last - first + step - 1) / step : (first - last - step - 1) / -step;
  Dims result = shape;
  result[k] = std::max<std::int64_t>(count, 0);
  Rewriter rewriter([&](const NodePtr& node) {
    if (node->opcode == Opcode::constant) return with_axes(*node, result, {}, 0);
    Dims strides = node->strides;
    strides[k] *= step;
    return with_axes(*node, result, strides,
                     result[k] > 0 ? node->offset + first * node->strides[k] : node->offset);
  });
  return rewriter(a);
}

Expr frame(const Expr& a, int axis, std::int64_t length, std::int64_t hop) {
  const int k = resolve_axis(axis, a.shape().rank);
  return map_axes(a, [&](ArrayView view) {
    const ArrayView old = view;
    view.shape.rank = view.strides.rank = old.rank() + 1;
    for (int i = k + 1; i < old.rank(); ++i) {
      view.shape[i + 1] = old.shape[i];
      view.strides[i + 1] = old.strides[i];
    }
    const std::int64_t pieces = 1 + (old.shape[k] - length) / hop;
    view.shape[k] = pieces;
    view.strides[k] =
        pieces > 1 ? old.strides[k] * hop : 0;  // else it means nothing, and could overflow
    view.shape[k + 1] = length;
    view.strides[k + 1] = old.strides[k];
    return view;
  });
}

bool can_reshape(const Expr& a, const Dims& shape) {
  const Dims resolved = resolve_reshape(count_of(a.shape()), shape);
  return all_leaves(
      a, [&](const Node& leaf) { return forebay::can_reshape(axes_of(leaf), resolved); });
}

Expr reshape(const Expr& a, const Dims& shape) {
  const Dims resolved = resolve_reshape(count_of(a.shape()), shape);
  Rewriter rewriter([&](const NodePtr& node) {
    if (node->opcode == Opcode::constant) return with_axes(*node, resolved, {}, 0);
    return with_axes(*node, resolved, forebay::reshape(axes_of(*node), resolved).strides,
                     node->offset);
  });
  return rewriter(a);
}

Expr substitute(const Expr& a, std::span<const Expr> sources) {
  Rewriter rewriter([&](const NodePtr& node) {
    if (node->opcode == Opcode::constant || node->source < 0) return Expr(node);
    FOREBAY_REQUIRE(node->source < static_cast<int>(sources.size()), invalid,
                    "substitute: the expression reads source {}; {} were given.", node->source,
                    sources.size());
    return read_through(*node, sources[static_cast<std::size_t>(node->source)]);
  });
  return rewriter(a);
}

bool is_dense_leaf(const Expr& a) {
  const Node& node = *a.node();
  return node.opcode == Opcode::leaf && node.offset == 0 && is_dense(node.shape, node.strides);
}

}  // namespace forebay::expr
