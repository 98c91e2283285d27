#include <forebay/pipeline/dataflow.h>

#include <algorithm>
#include <map>

#include <forebay/array/require.h>

namespace forebay {
namespace {

std::vector<std::string> strings(const std::vector<std::string_view>& names) {
  return {names.begin(), names.end()};
}

class Resolver {
 public:
  Resolver(const Spec& spec, Mistakes& mistakes) : spec_(spec), mistakes_(mistakes) {}

  Dataflow run() {
    for (const Column& column : spec_.source->columns())
      write(column.name, -1);
    std::string current = spec_.source->columns().empty() ? "" : spec_.source->columns()[0].name;
    for (int stage = 0; stage < static_cast<int>(spec_.stages.size()); ++stage)
      resolve_stage(stage, current);
    resolve_outputs();
    find_needed();
    return std::move(flow_);
  }

 private:
  int write(const std::string& name, int stage) {
    if (!latest_.contains(name)) order_.push_back(name);
    const int version = static_cast<int>(flow_.versions.size());
    flow_.versions.push_back({.name = name, .writer = stage, .readers = {}});
    latest_[name] = version;
    return version;
  }

  void resolve_stage(int stage, std::string& current) {
    const StageSpec& asked = spec_.stages[static_cast<std::size_t>(stage)];
    const OpDef& op = asked.op.entry().def;
    const auto mistake = [&](const std::string& text) {
      mistakes_.add(stage, asked.position, stage_title(spec_, stage) + ": " + text);
    };
    bool known = true;

    std::vector<std::string> inputs = asked.inputs;
    if (inputs.empty()) inputs.push_back(current);
    std::string rebound = inputs[0];
    try {
      if (op.names_inputs == nullptr) {
        check_count(asked, inputs.size());
      } else {
        inputs = named_inputs(asked, current);
        if (asked.inputs.empty()) rebound = rebound_name(asked, inputs, current);
      }
    } catch (const Error& error) {
      mistake(without_op_name(error.what(), op.name));
      known = false;
    }
    Dataflow::Stage resolved;
    for (const std::string& name : inputs) {
      const auto found = latest_.find(name);
      resolved.inputs.push_back(found == latest_.end() ? -1 : found->second);
      if (found == latest_.end()) {
        // Without columns there is no field to name: the source has been reported.
        if (!order_.empty()) {
          mistake(fmt::format("it reads `{}`, but no such field exists here; there are {}.{}", name,
                              quoted(order_), did_you_mean(name, order_)));
        }
        known = false;
      } else if (!flow_.versions[static_cast<std::size_t>(found->second)].known) {
        known = false;
      }
    }

    std::vector<std::string> outputs = asked.outputs;
    if (outputs.empty()) outputs.push_back(rebound);
    if (outputs.size() > op.outputs.size()) {
      mistake(fmt::format("`outputs` names {} fields; it writes {} ({}).", outputs.size(),
                          op.outputs.size(), quoted(strings(op.outputs))));
      known = false;
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (std::find(outputs.begin(), outputs.begin() + static_cast<std::ptrdiff_t>(i),
                    outputs[i]) != outputs.begin() + static_cast<std::ptrdiff_t>(i)) {
        mistake(fmt::format("`outputs` names `{}` twice; give each its own name.", outputs[i]));
        known = false;
      }
    }
    for (const std::string& name : outputs) {
      resolved.outputs.push_back(write(name, stage));
      flow_.versions.back().known = known;
    }
    current = outputs[0];
    flow_.stages.push_back(std::move(resolved));
  }

  static void check_count(const StageSpec& asked, std::size_t count) {
    const OpDef& op = asked.op.entry().def;
    const auto most = op.inputs.size(), least = asked.op.required_inputs();
    if (count >= least && count <= most) return;
    const std::string names = quoted(strings(op.inputs));
    if (asked.inputs.empty())
      fail(ErrorKind::invalid, "it reads {} fields ({}); name them in `inputs`.", least, names);
    fail(ErrorKind::invalid, "`inputs` names {} fields; it reads {} ({}).", count,
         least == most ? fmt::format("{}", most) : fmt::format("{} to {}", least, most), names);
  }

  /// The fields that an op whose settings name its inputs reads. `x` is the stage's first input
  /// where no field is called that.
  std::vector<std::string> named_inputs(const StageSpec& asked, const std::string& current) const {
    std::vector<std::string> fields = asked.op.inputs();
    const auto listed = [&](const std::string& name) {
      return asked.inputs.empty() ? latest_.contains(name)
                                  : std::ranges::count(asked.inputs, name) > 0;
    };
    const std::string& first = asked.inputs.empty() ? current : asked.inputs[0];
    for (std::string& name : fields) {
      if (name == "x" && !listed(name)) name = first;
      FOREBAY_REQUIRE(
          asked.inputs.empty() || listed(name), invalid,
          "it reads `{}`, which is not in `inputs` ({}); add it there, or leave `inputs` "
          "out.",
          name, quoted(asked.inputs));
    }
    for (const std::string& name : asked.inputs) {
      FOREBAY_REQUIRE(std::ranges::count(fields, name) > 0, invalid,
                      "`inputs` names `{}`, which it does not read; it reads {}.", name,
                      quoted(fields));
    }
    return fields;
  }

  /// What such an op writes when it names nothing.
  static std::string rebound_name(const StageSpec& asked, const std::vector<std::string>& inputs,
                                  const std::string& current) {
    const bool reads_current = std::ranges::count(inputs, current) > 0;
    FOREBAY_REQUIRE(reads_current || inputs.size() == 1 || !asked.outputs.empty(), invalid,
                    "it reads {}, none of which is `{}`, which the stage before it wrote; name in "
                    "`outputs` what it writes.",
                    quoted(inputs), current);
    return reads_current ? current : inputs[0];
  }

  void resolve_outputs() {
    const std::vector<std::string>& asked = spec_.output.empty() ? order_ : spec_.output;
    for (std::size_t i = 0; i < asked.size(); ++i) {
      const std::string& name = asked[i];
      const auto found = latest_.find(name);
      if (found == latest_.end()) {
        mistakes_.add(Mistakes::kOutput, spec_.output_position,
                      fmt::format("output: there is no field `{}`; there are {}.{}", name,
                                  quoted(order_), did_you_mean(name, order_)));
        continue;
      }
      if (std::find(asked.begin(), asked.begin() + static_cast<std::ptrdiff_t>(i), name) !=
          asked.begin() + static_cast<std::ptrdiff_t>(i)) {
        if (!spec_.output.empty())
          mistakes_.add(Mistakes::kOutput, spec_.output_position,
                        fmt::format("output: `{}` is named twice.", name));
        continue;
      }
      flow_.versions[static_cast<std::size_t>(found->second)].output = true;
      flow_.outputs.emplace_back(name, found->second);
    }
  }

  /// Stages from the last to the first: each is needed when somebody needs what it writes.
  void find_needed() {
    for (int i = static_cast<int>(flow_.stages.size()) - 1; i >= 0; --i) {
      Dataflow::Stage& stage = flow_.stages[static_cast<std::size_t>(i)];
      for (const int version : stage.outputs) {
        stage.needed = stage.needed || flow_.versions[static_cast<std::size_t>(version)].needed();
      }
      if (!stage.needed) continue;
      for (const int version : stage.inputs) {
        if (version < 0) continue;
        auto& readers = flow_.versions[static_cast<std::size_t>(version)].readers;
        if (readers.empty() || readers.back() != i) readers.push_back(i);
      }
    }
  }

  const Spec& spec_;
  Mistakes& mistakes_;
  Dataflow flow_;
  std::map<std::string, int> latest_;
  std::vector<std::string> order_;  // of the names, as they came up
};

}  // namespace

Dataflow resolve_fields(const Spec& spec, Mistakes& mistakes) {
  return Resolver(spec, mistakes).run();
}

}  // namespace forebay
