#include <forebay/pipeline/lazy_fields.h>

#include <algorithm>

#include <forebay/array/require.h>
#include <forebay/pipeline/memory_map.h>

namespace forebay {
namespace {
std::size_t index(int i) { return static_cast<std::size_t>(i); }
}  // namespace

int LazyFields::add_value(PlanValue value) {
  plan_.values.push_back(std::move(value));
  return static_cast<int>(plan_.values.size()) - 1;
}

expr::Expr LazyFields::leaf(int value) const {
  const ArraySpec& spec = plan_.values[index(value)].spec;
  return expr::Expr::leaf(value, spec.dtype, spec.shape);
}

int LazyFields::batch_info(PlanValue::Kind kind, Device device) {
  for (std::size_t i = 0; i < plan_.values.size(); ++i) {
    if (plan_.values[i].kind == kind && plan_.values[i].device == device)
      return static_cast<int>(i);
  }
  const bool ids = kind == PlanValue::Kind::sample_ids;
  return add_value({.kind = kind,
                    .name = ids ? "sample ids" : "epoch, batch and seed",
                    .spec = {Dtype::i64, {ids ? plan_.batch_size : 3}},
                    .device = device});
}

int LazyFields::base_of(int value) const {
  const PlanValue& v = plan_.values[index(value)];
  return v.kind == PlanValue::Kind::view ? v.base : value;
}

std::optional<int> LazyFields::memory(const expr::Expr& expression) const {
  const expr::Node& node = *expression.node();
  if (!expr::is_dense_leaf(expression) || node.source < 0) return {};
  const ArraySpec spec{expression.dtype(), expression.shape()};
  if (plan_.values[index(node.source)].spec != spec) return {};
  return node.source;
}

bool LazyFields::append_where_smaller(Lazy& lazy) {
  const std::vector<int> sources = sources_of(lazy.expr);
  return std::any_of(sources.begin(), sources.end(), [&](int source) {
    return bytes_of({lazy.expr.dtype(), lazy.expr.shape()}) <=
               bytes_of(plan_.values[index(source)].spec) &&
           append_to_kernel(source, lazy);
  });
}

/// Whether no field that is still to be read, other than `lazy`, comes from `value`.
bool LazyFields::is_last_reader(const Lazy& lazy, int value) const {
  for (std::size_t version = 0; version < lazies_.size(); ++version) {
    const Lazy& other = lazies_[version];
    if (other.expr.node() == lazy.expr.node() ||
        taken_[version] >= flow_.versions[version].uses() || !other.expr.valid())
      continue;
    const std::vector<int> sources = sources_of(other.expr);
    if (std::find(sources.begin(), sources.end(), value) != sources.end()) return false;
  }
  return true;
}

bool LazyFields::append_to_kernel(int of, Lazy& lazy) {
  const bool delivered =
      std::any_of(plan_.outputs.begin(), plan_.outputs.end(),
                  [&](const PlanOutput& output) { return base_of(output.value) == of; });
  if (delivered) return false;
  if (!is_last_reader(lazy, of) || !drafts_.append_to_kernel(of, lazy.expr, lazy.pending))
    return false;
  lazy.expr = leaf(of);
  lazy.pending.clear();
  return true;
}

int LazyFields::dense(Lazy& lazy, const std::string& name) {
  if (const auto value = memory(lazy.expr)) return *value;
  const expr::Node& node = *lazy.expr.node();
  const ArraySpec spec{lazy.expr.dtype(), lazy.expr.shape()};
  if (expr::is_dense_leaf(lazy.expr) && node.source >= 0) {
    const int view = add_value({.kind = PlanValue::Kind::view,
                                .name = name,
                                .spec = spec,
                                .device = lazy.device,
                                .base = base_of(node.source)});
    lazy.expr = leaf(view);
    return view;
  }
  for (const int source : sources_of(lazy.expr)) {
    if (!append_to_kernel(source, lazy)) continue;
    plan_.values[index(source)].name = name;
    return source;
  }
  const int value = add_value({.name = name, .spec = spec, .device = lazy.device});
  drafts_.add({.step = {.kind = PlanStep::Kind::pointwise,
                        .device = lazy.device,
                        .outputs = {value},
                        .stages = lazy.pending},
               .results = {lazy.expr}});
  lazy.expr = leaf(value);
  lazy.pending.clear();
  return value;
}

Lazy LazyFields::on(int version, Device device) {
  Lazy& lazy = lazies_[index(version)];
  if (lazy.device == device) return lazy;
  const int from = dense(lazy, flow_.versions[index(version)].name);
  const auto [found, fresh] = copies_.try_emplace(from, -1);
  if (fresh) {
    const PlanValue source = plan_.values[index(from)];
    found->second = add_value({.kind = PlanValue::Kind::copied,
                               .name = source.name,
                               .spec = source.spec,
                               .device = device});
    if (source.kind == PlanValue::Kind::column) {
      loaded_.emplace_back(from, found->second);
    } else {
      drafts_.add(
          {.step = {.kind = PlanStep::Kind::copy,
                    .device = device.is_cuda() ? device : source.device,
                    .inputs = {from},
                    .outputs = {found->second},
                    .stages = lazy.pending,
                    .label = fmt::format("copy {} to {}", source.name, to_string(device))}});
    }
  }
  return {.spec = lazy.spec, .expr = leaf(found->second), .device = device, .pending = {}};
}

}  // namespace forebay
