#include <forebay/pipeline/identity.h>

#include <forebay/array/require.h>
#include <forebay/ops/eager.h>
#include <forebay/ops/visitors.h>
#include <forebay/pipeline/config/keys.h>
#include <forebay/pipeline/dataflow.h>
#include <forebay/pipeline/hash.h>
#include <forebay/pipeline/value_checks.h>

namespace forebay {
namespace {

constexpr std::size_t kLongestText = 120;

std::string shortened(const std::string& text) {
  if (text.size() <= kLongestText) return text;
  return fmt::format("{}... #{}", text.substr(0, kLongestText), hex(hash_text(text)));
}

std::string hash_of(const Identity::Parts& parts) {
  std::string all;
  for (const auto& [name, text] : parts)
    all += name + ": " + text + "\n";
  return hex(hash_text(all));
}

/// "f32 (3, 4) #9a0d...": what it is and what is in it, wherever it came from.
std::string array_text(const Array& array) {
  Array dense = array;
  if (array.device().is_cuda() || !is_dense(array.view())) {
    const Context context = Context::create(array.device(), 1);
    dense = contiguous(array, context);
    const Context host = Context::create(Device::cpu(), 1);
    Array copied = Array::empty(dense.shape(), dense.dtype(), host);
    copy(dense.view(), copied.view(), context.stream);
    context.stream.synchronize();
    dense = copied;
  }
  const std::span bytes(static_cast<const std::byte*>(dense.data()), dense.bytes());
  return fmt::format("{} {} #{}", name_of(array.dtype()), to_string(array.shape()),
                     hex(hash_bytes(bytes)));
}

std::string op_text(const Op& op) {
  std::string list;
  for (const SettingText& setting : changed_settings(op)) {
    list += fmt::format("{}{}={}", list.empty() ? "" : ", ", setting.name,
                        setting.array ? array_text(*setting.array) : setting.text);
  }
  return fmt::format("{}({})", op.name(), list);
}

std::string fields_text(const Dataflow& flow, const std::vector<int>& versions) {
  std::string text;
  for (const int version : versions) {
    text += (text.empty() ? "" : ", ") + flow.versions[static_cast<std::size_t>(version)].name;
  }
  return text;
}

/// In the order of the sources, whatever that of the proportions.
std::string proportions_text(const Spec& spec) {
  std::string text;
  for (const SourcePart& part : spec.source->parts()) {
    for (const auto& [name, proportion] : spec.sampling.proportions) {
      if (name == part.name) text += fmt::format(" {}: {}", name, proportion);
    }
  }
  return text;
}

std::string order_text(const Plan& plan) {
  const Spec& spec = *plan.spec;
  std::string text =
      fmt::format("shuffle {}", config::kShuffleModes[static_cast<int>(spec.shuffle)]);
  if (spec.shuffle == ShuffleMode::window) text += fmt::format(" {}", spec.shuffle_window);
  text +=
      fmt::format(", sampling {}", config::kSamplingModes[static_cast<int>(spec.sampling.mode)]);
  if (spec.sampling.mode == SamplingMode::weighted)
    text += fmt::format(" {}", array_text(spec.sampling.weights));
  if (spec.sampling.mode == SamplingMode::mix) text += " of" + proportions_text(spec);
  return text + fmt::format(", last batch {}",
                            config::kLastBatchPolicies[static_cast<int>(spec.last_batch_policy)]);
}

std::string samples_text(const Plan& plan) {
  const Spec& spec = *plan.spec;
  std::string text = fmt::format("{}", plan.sampler->order().length());
  if (spec.subset) text += fmt::format(", of a subset {}", array_text(*spec.subset));
  if (spec.split) {
    text += fmt::format(", of the {} part with {} for validation{}, seed {}",
                        spec.split->part == SplitPart::train ? "train" : "validation",
                        spec.split->validation,
                        spec.split->by.empty() ? "" : " by " + spec.split->by, spec.split->seed);
  }
  if (spec.positions)
    text += fmt::format(", positions {} to {}", spec.positions->begin, spec.positions->end - 1);
  return text;
}

Identity::Parts plan_parts(const Plan& plan) {
  const Spec& spec = *plan.spec;
  Identity::Parts parts = {{"seed", fmt::format("{}", spec.seed)},
                           {"order", order_text(plan)},
                           {"samples of an epoch", samples_text(plan)}};
  if (spec.on_error.mode != ErrorMode::fail) {
    std::string text(config::kErrorModes[static_cast<int>(spec.on_error.mode)]);
    for (const Check& check : spec.checks)
      text += fmt::format(", {} {}", check.column, to_string(check));
    parts.emplace_back(kBadSamples, text);
  }
  Mistakes none;
  const Dataflow flow = resolve_fields(spec, none);
  for (std::size_t i = 0; i < spec.stages.size(); ++i) {
    const Dataflow::Stage& stage = flow.stages[i];
    if (!stage.needed) continue;
    parts.emplace_back(
        fmt::format("stage {}", i + 1),
        fmt::format("{}: {} -> {}", op_text(spec.stages[i].op), fields_text(flow, stage.inputs),
                    fields_text(flow, stage.outputs)));
  }
  std::string output;
  for (const PlanOutput& field : plan.outputs)
    output += (output.empty() ? "" : ", ") + field.name;
  parts.emplace_back("output", output);
  if (plan.mixes_samples)
    parts.emplace_back("batch size, since a stage mixes samples",
                       fmt::format("{}", spec.batch_size));
  for (auto& [name, text] : parts)
    text = shortened(text);
  return parts;
}

Identity::Parts dataset_parts(const Source& source) {
  std::string columns;
  for (const Column& column : source.columns()) {
    columns += fmt::format("{}{} {} {}", columns.empty() ? "" : ", ", column.name,
                           name_of(column.dtype), to_string(column.shape));
  }
  Identity::Parts parts = {{"samples", fmt::format("{}", source.size())},
                           {"columns", shortened(columns)}};
  if (source.parts().empty()) parts.emplace_back("content", source.fingerprint());
  for (const SourcePart& part : source.parts()) {
    parts.emplace_back(fmt::format("source {}", parts.size() - 1),
                       shortened(fmt::format("{}, {} samples, content {}", part.name,
                                             part.source->size(), part.source->fingerprint())));
  }
  return parts;
}

}  // namespace

std::string Identity::plan_hash() const { return hash_of(plan); }
std::string Identity::dataset_hash() const { return hash_of(dataset); }

Identity identity_of(const Plan& plan) {
  return {plan_parts(plan), dataset_parts(*plan.spec->source), plan.spec->source->describe()};
}

}  // namespace forebay
