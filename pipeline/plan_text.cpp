// A plan as people read it.

#include <algorithm>
#include <sstream>

#include <forebay/array/require.h>
#include <forebay/pipeline/memory_map.h>
#include <forebay/pipeline/plan.h>
#include <forebay/pipeline/row_reader.h>
#include <forebay/pipeline/value_checks.h>

namespace forebay {
namespace {

std::string bytes_text(std::size_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  auto amount = static_cast<double>(bytes) / 1024;
  const char* unit = "KiB";
  for (const char* larger : {"MiB", "GiB", "TiB"}) {
    if (amount < 1024) break;
    amount /= 1024;
    unit = larger;
  }
  return fmt::format("{:.1f} {}", amount, unit);
}

std::string spec_text(const ArraySpec& spec) {
  return fmt::format("{} {}", name_of(spec.dtype), to_string(spec.shape));
}

std::string values_text(const Plan& plan, const std::vector<int>& numbers) {
  std::string text;
  for (const int number : numbers) {
    if (number < 0) continue;  // an output that nobody reads
    const PlanValue& value = plan.values[static_cast<std::size_t>(number)];
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", value.name, spec_text(value.spec));
  }
  return text.empty() ? "nothing" : text;
}

const char* stream_of(const PlanStep& step) {
  if (step.kind == PlanStep::Kind::load) return "copy stream";
  return step.device.is_cuda() ? "compute stream" : "cpu stream";
}

std::string stages_text(const PlanStep& step) {
  if (step.stages.empty()) return {};
  std::string text = step.stages.size() == 1 ? "stage " : "stages ";
  for (std::size_t i = 0; i < step.stages.size(); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : ", ", step.stages[i] + 1);
  text += ": ";
  return text;
}

std::string program_text(const char* title, const expr::Program& program) {
  std::string text = *title == '\0' ? "" : fmt::format("       {}\n", title);
  std::istringstream lines(expr::to_string(program));
  for (std::string line; std::getline(lines, line);)
    text += fmt::format("       {}{}\n", *title == '\0' ? "" : "  ", line);
  return text;
}

/// What is computed in the step, apart from a kernel op's own work.
std::string programs_text(const PlanStep& step) {
  if (step.kind == PlanStep::Kind::pointwise) return program_text("", step.program);
  std::string text;
  for (std::size_t i = 0; i < step.problem.prologue.size(); ++i) {
    const bool alone = step.problem.prologue.size() == 1;
    text += program_text(alone ? "reads" : fmt::format("reads input {}", i).c_str(),
                         step.problem.load(i));
  }
  if (step.problem.epilogue.valid())
    text += program_text("writes, of its result source[0]", step.problem.store());
  return text;
}

std::string steps_text(const Plan& plan, std::optional<double> bandwidth) {
  std::string text = "steps\n";
  if (plan.steps.empty()) text += "  none: the columns are delivered as they are read\n";
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const PlanStep& step = plan.steps[i];
    const std::size_t moved = plan.bytes_moved(step);
    const bool on_device =
        step.kind == PlanStep::Kind::pointwise || step.kind == PlanStep::Kind::kernel;
    const bool timed = bandwidth && on_device && step.device == plan.device;
    text += fmt::format(
        "  {}. {}{}, on the {}, {} moved{}\n", i + 1, stages_text(step), step.label,
        stream_of(step), bytes_text(moved),
        timed ? fmt::format(", {:.4f} ms", static_cast<double>(moved) / *bandwidth * 1e3) : "");
    text += fmt::format("     {} -> {}\n", values_text(plan, step.inputs),
                        values_text(plan, step.outputs));
    text += programs_text(step);
  }
  if (bandwidth)
    text += fmt::format(
        "  times: the bytes at {:.0f} GB/s, the copy bandwidth measured on {} just now\n",
        *bandwidth / 1e9, to_string(plan.device));
  return text;
}

/// What is checked, and what a bad sample gives; nothing where no more than reading can go wrong.
std::string bad_samples_text(const Sampler& sampler, const Spec& spec) {
  std::string text;
  for (const Check& check : spec.checks) {
    text +=
        fmt::format("{} {} {}", text.empty() ? "  checks:" : ";", check.column, to_string(check));
  }
  if (!text.empty()) text += "\n";
  const OnError& asked = spec.on_error;
  if (asked.mode == ErrorMode::fail) return text;
  text +=
      fmt::format("  bad samples are {}; more than {} of the {}{} end the run",
                  asked.mode == ErrorMode::skip ? "skipped" : "replaced", limit_of(asked, sampler),
                  sampler.samples_of_shard(), sampler.shard().num_shards > 1 ? " of a shard" : "");
  if (!asked.quarantine.empty()) text += fmt::format("; they are listed in {}", asked.quarantine);
  return text + "\n";
}

std::string source_text(const Source& source) {
  if (source.parts().empty())
    return fmt::format("source {}, {} samples\n", source.describe(), source.size());
  std::string text = fmt::format("{} sources, {} samples\n", source.parts().size(), source.size());
  for (const SourcePart& part : source.parts()) {
    text += fmt::format("  {}: {}, {} samples from {} on\n", part.name, part.source->describe(),
                        part.source->size(), part.first);
  }
  return text;
}

std::string epoch_text(const Sampler& sampler, const Spec& spec) {
  const Shard& shard = sampler.shard();
  const std::int64_t length = sampler.order().length(), steps = sampler.steps_per_epoch();
  const std::int64_t tail = sampler.tail_rows();
  const std::int64_t left = spec.last_batch_policy == LastBatchPolicy::drop
                                ? length - steps * spec.batch_size * shard.num_shards
                                : 0;
  std::string text = fmt::format("epoch\n  {} samples {}\n  ", length, sampler.order().describe());
  if (shard.num_shards > 1)
    text += fmt::format("shard {} of {}, each with ", shard.shard_id, shard.num_shards);
  text += fmt::format("{} batches of {}", steps, spec.batch_size);
  if (tail > 0) text += fmt::format(", the last one of {}", tail);
  if (left > 0) text += fmt::format("; {} samples are dropped", left);
  return text + "\n" + bad_samples_text(sampler, spec);
}

std::string memory_text(const Plan& plan) {
  const MemoryMap map = map_memory(plan);
  const bool gpu = plan.device.is_cuda();
  const std::string device = to_string(plan.device);
  const auto slots = static_cast<std::size_t>(plan.slots());
  std::size_t read = 0, delivered = 0, moved = 0;
  for (const PlanValue& value : plan.values) {
    if (value.kind == PlanValue::Kind::column) read += bytes_of(value.spec);
  }
  for (const PlanOutput& output : plan.outputs) {
    delivered += bytes_of(plan.values[static_cast<std::size_t>(output.value)].spec);
  }
  for (const PlanStep& step : plan.steps)
    moved += plan.bytes_moved(step);

  std::string text = "memory\n";
  text += fmt::format(
      "  a batch: {} read, {}{} moved by steps, {} delivered\n", bytes_text(read),
      gpu ? fmt::format("{} copied to {}, ", bytes_text(plan.copied_bytes()), device) : "",
      bytes_text(moved), bytes_text(delivered));
  const auto amounts = [&](std::size_t on_device, std::size_t on_host) {
    return gpu ? fmt::format("{} on {} and {} of pinned host memory", bytes_text(on_device), device,
                             bytes_text(on_host))
               : fmt::format("{} on the host", bytes_text(on_host));
  };
  text += fmt::format("  a slot: {}\n", amounts(map.slot_device, map.slot_host));
  text += fmt::format(
      "  temporaries, shared by all slots: {} on {}, and what ops need while they run\n",
      bytes_text(gpu ? map.shared_device : map.shared_host), device);
  text += fmt::format(
      "  in all: {} in {} slots, one more for each batch beyond the first that the consumer holds "
      "(at most {})\n",
      amounts(slots * map.slot_device + map.shared_device, slots * map.slot_host + map.shared_host),
      slots, plan.spec->max_held_batches);
  return text;
}

}  // namespace

std::string to_string(const Plan& plan, std::optional<double> bandwidth) {
  const Spec& spec = *plan.spec;
  std::string text =
      fmt::format("pipeline {}: batches of {} on {}, {} ready ahead\n\n", spec.name,
                  plan.batch_size, to_string(plan.device), spec.prefetch_queue_depth);
  text += source_text(*spec.source);
  for (const PlanValue& value : plan.values) {
    if (value.kind == PlanValue::Kind::column) {
      text += fmt::format("  {} {}, {}\n", value.name, spec_text(value.spec),
                          bytes_text(bytes_of(value.spec)));
    }
  }
  text += fmt::format("\n{}\n{}\noutput\n", epoch_text(*plan.sampler, spec),
                      steps_text(plan, bandwidth));
  for (const PlanOutput& output : plan.outputs) {
    const PlanValue& value = plan.values[static_cast<std::size_t>(output.value)];
    text += fmt::format("  {} {} on {}, {}\n", output.name, spec_text(value.spec),
                        to_string(value.device), bytes_text(bytes_of(value.spec)));
  }
  text += fmt::format("\n{}", memory_text(plan));
  if (!plan.notes.empty()) text += "\nnotes\n";
  for (const std::string& line : plan.notes)
    text += fmt::format("  - {}\n", line);
  return text;
}

}  // namespace forebay
