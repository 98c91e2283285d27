#include <forebay/pipeline/cli/report.h>

#include <fmt/core.h>

#include <forebay/pipeline/cli/commands.h>

namespace forebay::cli {
namespace {

/// Nothing when there was none.
std::string bad_samples_text(const RunReport& report) {
  const Stats& stats = report.stats;
  if (stats.bad_samples == 0) return {};
  std::string text = fmt::format("{} bad samples were {}; the first:\n", stats.bad_samples,
                                 report.on_error == "skip" ? "skipped" : "replaced");
  for (const BadSample& sample : stats.first_bad)
    text += fmt::format("  {} sample {}: {}\n", sample.source, sample.index, sample.reason);
  return text;
}

}  // namespace

std::string to_text(const RunReport& report) {
  const Stats& stats = report.stats;
  std::string text = fmt::format("{} on {}: {} batches, {} samples in {:.3f} s\n", report.pipeline,
                                 report.device, stats.batches, stats.samples, report.seconds);
  text +=
      fmt::format("{:.0f} samples/s; waited {:.1f} % of the time; the first batch took {:.1f} ms\n",
                  report.samples_per_second(), 100 * report.wait_share(), report.first_batch_ms);
  text += bad_samples_text(report);
  if (report.files > 0) text += fmt::format("{} files saved in {}\n", report.files, report.folder);

  std::vector<std::vector<std::string>> rows;
  // What the source and the slots cost is known in all, not by the batch.
  rows.push_back({"read the samples", "", "", fmt::format("{:.1f}", stats.read_ms)});
  for (const Stats::Step& step : stats.steps) {
    const double each = step.runs > 0 ? step.total_ms / static_cast<double>(step.runs) : 0;
    rows.push_back({step.label, fmt::format("{:.3f}", each), fmt::format("{}", step.runs),
                    fmt::format("{:.1f}", step.total_ms)});
  }
  rows.push_back({"wait for a free slot", "", "", fmt::format("{:.1f}", stats.blocked_ms)});
  text += '\n';
  text += table({"step", "ms each", "times", "ms in all"}, rows);
  if (stats.copied_bytes > 0)
    text += fmt::format("\n{} bytes copied to the device\n", stats.copied_bytes);
  if (stats.returned_bytes > 0)
    text += fmt::format("{} bytes copied back to the host\n", stats.returned_bytes);
  return text;
}

}  // namespace forebay::cli
