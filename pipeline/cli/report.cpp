#include <forebay/pipeline/cli/report.h>

#include <fmt/core.h>

#include <forebay/pipeline/cli/commands.h>

namespace forebay::cli {

std::string to_text(const RunReport& report) {
  const Stats& stats = report.stats;
  std::string text = fmt::format("{} on {}: {} batches, {} samples in {:.3f} s\n", report.pipeline,
                                 report.device, stats.batches, stats.samples, report.seconds);
  text +=
      fmt::format("{:.0f} samples/s; waited {:.1f} % of the time; the first batch took {:.1f} ms\n",
                  report.samples_per_second(), 100 * report.wait_share(), report.first_batch_ms);
  if (report.files > 0) text += fmt::format("{} files saved in {}\n", report.files, report.folder);

  std::vector<std::vector<std::string>> rows;
  const auto add = [&](const std::string& label, double total_ms, std::int64_t runs) {
    rows.push_back({label,
                    runs > 0 ? fmt::format("{:.3f}", total_ms / static_cast<double>(runs)) : "-",
                    fmt::format("{}", runs), fmt::format("{:.1f}", total_ms)});
  };
  add("read the samples", stats.read_ms, stats.batches);
  for (const Stats::Step& step : stats.steps)
    add(step.label, step.total_ms, step.runs);
  add("wait for a free slot", stats.blocked_ms, stats.batches);
  text += "\n" + table({"step", "ms each", "times", "ms in all"}, rows);
  if (stats.copied_bytes > 0)
    text += fmt::format("\n{} bytes copied to the device\n", stats.copied_bytes);
  if (stats.returned_bytes > 0)
    text += fmt::format("{} bytes copied back to the host\n", stats.returned_bytes);
  return text;
}

}  // namespace forebay::cli
