// Spec -> Plan. Pointwise stages stay expressions over plan values as long as they can, so that
// runs of them become one kernel, or part of the kernel op before or behind them. Outputs, and what
// no kernel takes in, are written to memory. lazy_fields.h has the fields while they are being
// made, draft.h the steps.

#include <forebay/pipeline/plan.h>

#include <algorithm>
#include <map>
#include <utility>

#include <forebay/array/require.h>
#include <forebay/ops/random.h>
#include <forebay/pipeline/dataflow.h>
#include <forebay/pipeline/draft.h>
#include <forebay/pipeline/lazy_fields.h>
#include <forebay/pipeline/order/declared.h>

namespace forebay {
namespace {

std::size_t index(int i) { return static_cast<std::size_t>(i); }

std::vector<int> merged(std::vector<int> a, const std::vector<int>& b) {
  a.insert(a.end(), b.begin(), b.end());
  std::sort(a.begin(), a.end());
  a.erase(std::unique(a.begin(), a.end()), a.end());
  return a;
}

class Planner {
 public:
  Planner(std::shared_ptr<const Spec> spec, std::shared_ptr<const Sampler> sampler,
          std::int64_t rows, Dataflow flow, Mistakes& mistakes)
      : spec_(*spec),
        flow_(std::move(flow)),
        mistakes_(mistakes),
        drafts_(plan_.values, spec->fuse),
        fields_(flow_, plan_, drafts_) {
    plan_.spec = std::move(spec);
    plan_.sampler = std::move(sampler);
    plan_.batch_size = rows;
    plan_.device = spec_.device.value_or(cuda_device_count() > 0 ? Device::cuda() : Device::cpu());
  }

  /// Nothing when there are mistakes.
  std::shared_ptr<const Plan> run() {
    add_columns();
    for (int stage = 0; stage < static_cast<int>(spec_.stages.size()); ++stage)
      add_stage(stage);
    if (mistakes_.any()) return nullptr;
    std::vector<int> delivered;
    for (const auto& [name, version] : flow_.outputs) {
      Lazy lazy = fields_.on(version, plan_.device);
      const int value = fields_.dense(lazy, name);
      fields_[version] = lazy;
      fields_.take(version);
      PlanValue& memory = plan_.values[index(fields_.base_of(value))];
      if (memory.kind == PlanValue::Kind::temporary) memory.kind = PlanValue::Kind::output;
      plan_.outputs.push_back({.name = name, .value = value});
      delivered.push_back(fields_.base_of(value));
    }
    plan_.steps = drafts_.finish(delivered, plan_.notes);
    for (PlanStep& step : plan_.steps)
      label(step);
    add_load();
    return std::make_shared<const Plan>(std::move(plan_));
  }

 private:
  void note(const std::string& text) { plan_.notes.push_back(text); }
  /// The names of its stages' ops.
  void label(PlanStep& step) const {
    if (!step.label.empty()) return;
    for (const int stage : step.stages) {
      step.label +=
          (step.label.empty() ? "" : " + ") + std::string(spec_.stages[index(stage)].op.name());
    }
  }

  void add_columns() {
    const auto& columns = spec_.source->columns();
    for (int i = 0; i < static_cast<int>(columns.size()); ++i) {
      const Column& column = columns[index(i)];
      ArraySpec spec{column.dtype, {plan_.batch_size}};
      if (!flow_.versions[index(i)].known) continue;
      for (const std::int64_t extent : column.shape)
        spec.shape.push_back(extent);
      const int value = fields_.add_value({.kind = PlanValue::Kind::column,
                                           .name = column.name,
                                           .spec = spec,
                                           .device = {},
                                           .column = i});
      fields_[i] = {
          .spec = spec, .expr = fields_.leaf(value), .device = Device::cpu(), .pending = {}};
      if (!flow_.versions[index(i)].needed()) {
        note(fmt::format("column `{}` is read, but no stage and no output uses it", column.name));
      }
    }
  }

  void add_stage(int i) {
    const StageSpec& stage = spec_.stages[index(i)];
    const Dataflow::Stage& names = flow_.stages[index(i)];
    const Device device = stage.device.value_or(plan_.device);
    bool known = check_device(i, device);
    const auto version_known = [&](int version) {
      return version >= 0 && flow_.versions[index(version)].known;
    };
    known = known && std::all_of(names.inputs.begin(), names.inputs.end(), version_known);
    known = known && std::all_of(names.outputs.begin(), names.outputs.end(), version_known);
    if (known) {
      try {
        add_known_stage(i, device);
        return;
      } catch (const Error& error) {
        mistakes_.add(
            i, stage.position,
            stage_title(spec_, i) + ": " + without_op_name(error.what(), stage.op.name()));
      }
    }
    for (const int version : names.outputs)
      flow_.versions[index(version)].known = false;
  }

  bool check_device(int i, Device device) {
    if (device == plan_.device || device == Device::cpu()) return true;
    mistakes_.add(i, spec_.stages[index(i)].position,
                  fmt::format("{}: it is placed on {}, but the pipeline runs on {}; a stage runs "
                              "there or on the cpu.",
                              stage_title(spec_, i), to_string(device), to_string(plan_.device)));
    return false;
  }

  void add_known_stage(int i, Device device) {
    const StageSpec& stage = spec_.stages[index(i)];
    const Dataflow::Stage& names = flow_.stages[index(i)];
    std::vector<ArraySpec> specs;
    for (const int version : names.inputs)
      specs.push_back(fields_[version].spec);
    const std::vector<ArraySpec> results = stage.op.infer(specs);
    for (std::size_t k = 0; k < names.outputs.size(); ++k) {
      fields_[names.outputs[k]] = {.spec = results[k], .expr = {}, .device = device, .pending = {}};
    }
    if (!names.needed) {
      note(fmt::format("{} is left out: nothing uses what it writes", stage_title(spec_, i)));
      return;
    }
    std::vector<Lazy> inputs;
    std::vector<expr::Expr> expressions;
    std::vector<int> pending;
    for (const int version : names.inputs) {
      inputs.push_back(fields_.on(version, device));
      expressions.push_back(inputs.back().expr);
      pending = merged(pending, inputs.back().pending);
    }
    if (stage.op.entry().def.draws != 0) {
      check_samples(stage.op.name(), specs[0].shape, plan_.batch_size);
      for (const auto kind : {PlanValue::Kind::sample_ids, PlanValue::Kind::position}) {
        const int value = fields_.batch_info(kind, device);
        specs.push_back(plan_.values[index(value)].spec);
        expressions.push_back(fields_.leaf(value));
        inputs.push_back({.spec = specs.back(), .expr = expressions.back(), .device = device});
      }
    }
    Materialiser materialise(*this, i, device, pending);
    const std::vector<expr::Expr> lowered = stage.op.lower(expressions, materialise);
    pending = materialise.used() ? std::vector<int>{i} : merged(pending, {i});
    note_mixing(i, specs, results[0], lowered.empty());
    if (lowered.empty()) {
      add_kernel(i, device, {specs, results}, std::move(inputs));
    } else {
      add_pointwise(i, device, results, lowered, pending);
    }
    for (const int version : names.inputs)
      fields_.take(version);
  }

  /// Of ops that do not say so themselves, a kernel op that makes the batch axis disappear.
  void note_mixing(int i, const std::vector<ArraySpec>& inputs, const ArraySpec& result,
                   bool kernel) {
    const Op& op = spec_.stages[index(i)].op;
    const auto says = op.entry().def.mixes_samples;
    const auto has_batch_axis = [&](const ArraySpec& spec) {
      return spec.shape.rank > 0 && spec.shape[0] == plan_.batch_size;
    };
    const bool mixes = says != nullptr
                           ? says(op.raw_settings(), inputs)
                           : kernel && has_batch_axis(inputs[0]) && !has_batch_axis(result);
    if (!mixes) return;
    plan_.mixes_samples = true;
    note(fmt::format(
        "{} mixes samples: its result depends on batch_size and on which samples meet in a batch",
        stage_title(spec_, i)));
  }

  void add_pointwise(int i, Device device, const std::vector<ArraySpec>& results,
                     const std::vector<expr::Expr>& lowered, const std::vector<int>& pending) {
    const auto& outputs = flow_.stages[index(i)].outputs;
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      const Dataflow::Version& version = flow_.versions[index(outputs[k])];
      if (!version.needed()) continue;
      Lazy& lazy = fields_[outputs[k]];
      lazy = {.spec = results[k], .expr = lowered[k], .device = device, .pending = pending};
      FOREBAY_REQUIRE(
          lazy.expr.dtype() == results[k].dtype && lazy.expr.shape() == results[k].shape, invalid,
          "it infers {} {} but lowers to {} {}; this is a defect of the op.",
          name_of(results[k].dtype), to_string(results[k].shape), name_of(lazy.expr.dtype()),
          to_string(lazy.expr.shape()));
      // An index map costs its readers nothing; anything else is computed once.
      const bool shared = version.uses() > 1 && lazy.expr.node()->opcode != expr::Opcode::leaf;
      if (!shared && spec_.fuse) continue;
      const std::size_t before = drafts_.size();
      const int value = fields_.dense(lazy, version.name);
      lazy.pending.clear();
      if (shared && drafts_.size() > before) {
        drafts_.explain(value, fmt::format("`{}` of {} is written to memory: it is read {} times",
                                           version.name, stage_title(spec_, i), version.uses()));
      }
    }
  }

  void add_kernel(int i, Device device, Problem problem, std::vector<Lazy> inputs) {
    const StageSpec& stage = spec_.stages[index(i)];
    const Dataflow::Stage& names = flow_.stages[index(i)];
    FOREBAY_REQUIRE(stage.op.entry().body(device.kind) != nullptr, unsupported,
                    "this build has no {} body of the op; place the stage with `device: {}`.",
                    device.is_cuda() ? "CUDA" : "CPU", device.is_cuda() ? "cpu" : "cuda");
    Draft draft{
        .step = {
            .kind = PlanStep::Kind::kernel, .device = device, .stages = {i}, .kernel_stage = i}};
    const auto fuses = stage.op.entry().def.fuses;
    if (fuses != nullptr && spec_.fuse)
      draft.fuses = fuses(stage.op.raw_settings(), problem, device.kind);
    for (std::size_t k = 0; k < names.inputs.size(); ++k) {
      const auto same = std::find(names.inputs.begin(), names.inputs.end(), names.inputs[k]);
      if (const auto first = static_cast<std::size_t>(same - names.inputs.begin()); first < k) {
        draft.inputs.push_back(draft.inputs[first]);
        continue;
      }
      const std::string& name = flow_.versions[index(names.inputs[k])].name;
      if (draft.fuses.prologue &&
          !(fields_.memory(inputs[k].expr) || fields_.append_where_smaller(inputs[k]))) {
        for (const int pending : inputs[k].pending)
          draft.step.stages.push_back(pending);
        draft.inputs.push_back(inputs[k].expr);
        continue;
      }
      const std::size_t before = drafts_.size();
      const int value = fields_.dense(inputs[k], name);
      draft.inputs.push_back(fields_.leaf(value));
      if (inputs[k].device == fields_[names.inputs[k]].device) fields_[names.inputs[k]] = inputs[k];
      if (drafts_.size() > before) {
        drafts_.explain(
            value, fmt::format("`{}` is written to memory before {}: {} takes no pointwise work in",
                               name, stage_title(spec_, i), stage.op.name()));
      }
    }
    for (std::size_t k = names.inputs.size(); k < inputs.size(); ++k)
      draft.inputs.push_back(inputs[k].expr);
    draft.step.stages = merged(draft.step.stages, {});
    for (std::size_t k = 0; k < problem.outputs.size(); ++k) {
      const bool needed =
          k < names.outputs.size() && flow_.versions[index(names.outputs[k])].needed();
      if (!needed) {
        draft.step.outputs.push_back(-1);
        continue;
      }
      Lazy& lazy = fields_[names.outputs[k]];
      const int value = fields_.add_value({.name = flow_.versions[index(names.outputs[k])].name,
                                           .spec = lazy.spec,
                                           .device = device});
      lazy.expr = fields_.leaf(value);
      draft.step.outputs.push_back(value);
    }
    draft.step.problem = std::move(problem);
    drafts_.add(std::move(draft));
  }

  /// All columns that travel do so in one step, the first.
  void add_load() {
    if (fields_.loaded().empty()) return;
    PlanStep step{.kind = PlanStep::Kind::load, .device = plan_.device, .label = "copy "};
    for (const auto& [column, copy] : fields_.loaded()) {
      step.label += (step.inputs.empty() ? "" : ", ") + plan_.values[index(column)].name;
      step.inputs.push_back(column);
      step.outputs.push_back(copy);
    }
    step.label += " to " + to_string(plan_.device);
    plan_.steps.insert(plan_.steps.begin(), std::move(step));
  }

  /// For index maps that the memory's layout does not allow: the planner adds a step.
  class Materialiser final : public Materialise {
   public:
    /// `pending`: the stages whose work comes before the index map of `stage`.
    Materialiser(Planner& planner, int stage, Device device, std::vector<int> pending)
        : planner_(planner), stage_(stage), device_(device), pending_(std::move(pending)) {
      if (pending_.empty()) pending_ = {stage};
    }
    expr::Expr operator()(const expr::Expr& expression) override {
      used_ = true;
      const int input = planner_.flow_.stages[index(stage_)].inputs[0];
      const std::string& name = planner_.flow_.versions[index(input)].name;
      Lazy lazy{.spec = {}, .expr = expression, .device = device_, .pending = pending_};
      const int value = planner_.fields_.dense(lazy, name);
      planner_.drafts_.explain(
          value,
          fmt::format(
              "`{}` is written to memory before {}: its new shape is no index map of what is there",
              name, stage_title(planner_.spec_, stage_)));
      return lazy.expr;
    }
    bool used() const { return used_; }

   private:
    Planner& planner_;
    int stage_;
    Device device_;
    std::vector<int> pending_;
    bool used_ = false;
  };

  const Spec& spec_;
  Dataflow flow_;
  Mistakes& mistakes_;
  Plan plan_;
  Drafts drafts_;
  LazyFields fields_;
};

/// Random ops that name no stream get the number of the stage among those of its op.
std::shared_ptr<const Spec> with_streams(std::shared_ptr<const Spec> spec) {
  std::map<const OpEntry*, std::int64_t> counts;
  std::shared_ptr<Spec> result;
  for (std::size_t i = 0; i < spec->stages.size(); ++i) {
    const Op& op = spec->stages[i].op;
    if (op.entry().def.draws == 0) continue;
    if (result == nullptr) result = std::make_shared<Spec>(*spec);
    const std::int64_t number = counts[&op.entry()]++;
    result->stages[i].op = Op(op.entry(), op.entry().def.with_stream(op.raw_settings(), number));
  }
  return result == nullptr ? spec : result;
}

}  // namespace

std::shared_ptr<const Plan> compile_for(const Plan& plan, std::int64_t rows) {
  Mistakes mistakes;
  Dataflow flow = resolve_fields(*plan.spec, mistakes);
  auto result = Planner(plan.spec, plan.sampler, rows, std::move(flow), mistakes).run();
  try {
    mistakes.raise();
  } catch (const Error& error) {
    fail(ErrorKind::invalid,
         "the last batch of an epoch has {} of {} rows, for which the pipeline does not fit; set "
         "`last_batch_policy` to drop or fill:\n{}",
         rows, plan.spec->batch_size, error.what());
  }
  return result;
}

std::shared_ptr<const Plan> compile(std::shared_ptr<const Spec> spec) {
  spec = with_streams(std::move(spec));
  Mistakes mistakes;
  const bool has_columns = check_settings(*spec, mistakes);
  if (spec->source == nullptr) mistakes.raise();
  std::shared_ptr<const Sampler> sampler;
  if (has_columns) {
    const OrderPtr order = declared_order(*spec, mistakes);
    if (!mistakes.any()) sampler = std::make_shared<const Sampler>(declared_sampler(*spec, order));
  }
  Dataflow flow = resolve_fields(*spec, mistakes);
  for (Dataflow::Version& version : flow.versions)
    version.known = version.known && has_columns;
  // Shapes are checked behind other mistakes too, with a batch that is surely legal.
  const std::int64_t rows = std::max<std::int64_t>(spec->batch_size, 1);
  auto plan = Planner(spec, sampler, rows, std::move(flow), mistakes).run();
  mistakes.raise();
  if (const std::int64_t tail = sampler->tail_rows(); tail > 0) compile_for(*plan, tail);
  return plan;
}

}  // namespace forebay
